"""What may be said in --model_args and in generation_kwargs, and what is answered to the rest."""

from typing import Any

import pytest

from xpredflow.errors import InputError
from xpredflow.harness.arguments import Arguments
from xpredflow.harness.requests import read_request


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decodr": "flow"}, "did you mean 'decoder'"),
        ({"decoder": "flow", "tauu": 1}, "did you mean 'tau'"),
        ({"decoder": "mask", "policy": "confidence"}, "unknown model argument 'policy'"),
        ({"decoder": "flw"}, "did you mean 'flow'"),
        ({"chat": True}, "--apply_chat_template"),
        ({"system": "be kind"}, "--system_instruction"),
        ({"budget": "5/4"}, "at most 1"),
        ({"gen_length": 8, "max_new_tokens": 8}, "given twice"),
        ({"mc_num": 0}, "mc_num is 0"),
        ({"mc_num": "many"}, "whole number"),
        ({"batch_size": "big"}, "'auto'"),
    ],
)
def test_bad_model_arguments_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Arguments.read(given)


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({"batch_size": 1}, None),  # what the harness passes when nothing was said
        ({"batch_size": "8"}, 8),
        ({"batch_size": 8, "max_batch": 1}, 1),
        ({"batch_size": "auto", "max_batch_size": 4}, 4),
        ({"batch_size": "auto:2"}, None),
    ],
)
def test_batch_size_is_the_rows_of_a_pass(given: dict[str, Any], rows: int | None) -> None:
    assert Arguments.read(given).settings.max_batch == rows


@pytest.mark.parametrize(
    ("kwargs", "decoder", "message"),
    [
        ({"do_sample": True}, "flow", "draws no tokens.*mask"),
        ({"temperature": 0.7}, "flow", "temperature 0.7"),
        ({"do_sample": True, "top_p": 0.9}, "mask", "top_p=0.9"),
        ({"num_beams": 4}, "mask", "no beams"),
        ({"max_gen_tok": 4}, "mask", "did you mean 'max_gen_toks'"),
        ({"max_gen_toks": "long"}, "mask", "whole number"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused(
    kwargs: dict[str, Any], decoder: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_request(kwargs, decoder, {})


def test_wishes_in_the_engines_words() -> None:
    quiet = {"do_sample": False, "temperature": 0.7, "top_k": 5, "num_beams": 1, "until": "\n"}
    request_ = read_request({**quiet, "max_tokens": 7}, "flow", {})
    assert request_.options == (("gen_length", 7),)
    assert request_.until == ("\n",)
    loud = read_request({"do_sample": True, "until": None}, "mask", {})
    assert loud.options == (("temperature", 1.0),)
    assert read_request({"do_sample": True}, "mask", {"temperature": 0.2}).options == ()
