"""Options that make no sense are refused with what would."""

import pytest

from xpredflow import InputError, make_decoder


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("entropy:-1", {}, "threshold is -1.0: expected a number ≥ 0"),
        ("eb:-1", {}, "gamma is -1.0"),
        ("klass:2", {}, "threshold is 2.0: expected a number ≤ 1"),
        ("klass", {"history": -1}, "history is -1"),
        ("klass", {"kl_threshold": -0.1}, "kl_threshold is -0.1"),
        ("wino", {"threshold_back": 1.5}, "threshold_back is 1.5"),
        ("saber:0", {}, "n is 0"),
        ("editing", {"edit_threshold": -1}, "edit_threshold is -1"),
        ("editing", {"max_post_steps": -1}, "max_post_steps is -1"),
        ("hierarchy", {"low_threshold": 3}, "low_threshold is 3"),
        ("credit", {"weight": -1}, "weight is -1"),
        ("credit", {"decay": 2}, "decay is 2"),
        ("remdm:best", {}, "strategy is 'best': expected 'cap'"),
        ("remdm:conf", {"eta": 0.1}, "'conf' has none: leave eta out"),
        ("remdm", {"eta": 2}, "eta is 2"),
        ("remdm", {"t_off": 0.6}, "give 0 < t_off < t_on < 1"),
        ("remdm", {"alpha_on": 1}, "alpha_on is 1"),
        ("evotoken:2", {}, "alpha is 2.0"),
        ("evotoken", {"k": 0}, "k is 0"),
        ("remix", {"beta": -1}, "beta is -1"),
        ("remix", {"js_threshold": -1}, "js_threshold is -1"),
        ("remix", {"k": 0}, "k is 0"),
    ],
)
def test_bad_options_are_explained(spec: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_decoder(spec, options)
