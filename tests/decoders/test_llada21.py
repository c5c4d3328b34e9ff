"""LLaDA2.1's modes are token editing under the published thresholds."""

import pytest
from scene import assert_same_decoding

from xpredflow import InputError, make_decoder
from xpredflow.decoders.editing import Editing


@pytest.mark.parametrize(("mode", "thresholds"), [("quality", (0.7, 0.5)), ("speed", (0.5, 0.0))])
def test_a_mode_is_editing_with_its_thresholds(mode, thresholds) -> None:
    by_hand = Editing(threshold=thresholds[0], edit_threshold=thresholds[1])
    assert_same_decoding(f"llada2.1:{mode}", by_hand)


def test_what_is_given_wins_over_the_mode() -> None:
    made = make_decoder("llada2.1:speed", {"threshold": 0.6})
    assert (made.threshold, made.edit_threshold) == (0.6, 0.0)  # type: ignore[attr-defined]
    assert_same_decoding("llada2.1+threshold=0.95+edit_threshold=0.9", "editing")
    with pytest.raises(InputError, match="mode is 'fast': expected 'quality' or 'speed'"):
        make_decoder("llada2.1:fast")
