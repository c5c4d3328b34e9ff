"""Requests of the harness through the engine: text in, text out."""

import json
from pathlib import Path
from typing import Any

import pytest
from stand_in import XpredflowLM, ask, checkpoint, score

from xpredflow.engine.loop import generate
from xpredflow.errors import InputError

PROMPTS = ["one", "two and more", "x"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    return checkpoint(tmp_path_factory.mktemp("llada"))


@pytest.fixture
def lm(directory: str) -> XpredflowLM:
    return XpredflowLM(pretrained=directory, decoder="threshold", budget=4, gen_length=8)


def texts(lm: XpredflowLM, **options: Any) -> list[str]:
    """What the engine itself answers to the prompts as plain text."""
    options = {"budget": 4, "gen_length": 8, "chat": False, "decoder": "threshold", **options}
    return [done.text for done in generate(lm.model, PROMPTS, **options)]


def test_answers_are_the_engines_in_the_order_of_the_requests(lm: XpredflowLM) -> None:
    assert lm.generate_until([ask(p, until=[]) for p in PROMPTS]) == texts(lm)


def test_stop_texts_cut_the_answer_at_the_first_of_them(lm: XpredflowLM) -> None:
    whole = texts(lm)[0]
    assert len(whole) > 4
    for until in (whole[3], [whole[4:], whole[2:4], ""]):
        answer = lm.generate_until([ask("one", until=until)])[0]
        first = min(whole.find(stop) for stop in [*until] if stop)
        assert answer == whole[:first]


def test_options_reach_the_decoder(directory: str) -> None:
    lm = XpredflowLM(pretrained=directory, decoder="flow", policy="constant:1/2", budget="1/4")
    answers = lm.generate_until([ask(p, max_gen_toks=16) for p in PROMPTS])
    options = {"decoder": "flow", "policy": "constant:1/2", "budget": "1/4", "gen_length": 16}
    assert answers == texts(lm, **options)
    assert {answer.passes for answer in lm.passes.answers} == {4}


def test_the_tasks_length_counts_unless_model_args_say_another(directory: str) -> None:
    requests = [ask("one", max_gen_toks=3), ask("one", max_gen_toks=6)]
    loose = XpredflowLM(pretrained=directory, decoder="mask", budget=1)
    expected = [texts(loose, gen_length=n, decoder="mask", budget=1)[0] for n in (3, 6)]
    assert loose.generate_until(requests) == expected
    fixed = XpredflowLM(pretrained=directory, decoder="mask", max_new_tokens=5)
    fixed.generate_until([*requests, ask("one")])
    assert [answer.passes for answer in fixed.passes.answers] == [5, 5, 5]


def test_a_temperature_is_handed_to_decoders_that_have_one(directory: str) -> None:
    lm = XpredflowLM(pretrained=directory, decoder="mask", gen_length=8)
    request = ask("one", do_sample=True, temperature=2.0)
    drawn = lm.generate_until([request, request])
    assert drawn[0] != drawn[1]
    greedy = ask("one", do_sample=False, temperature=2.0, top_p=0.9)
    assert len(set(lm.generate_until([greedy, greedy]))) == 1


def test_text_that_looks_like_a_gap_stays_text(lm: XpredflowLM) -> None:
    answer = lm.generate_until([ask("a [[mask:3]] b")])[0]
    ids = lm.model.tokenizer("a [[mask:3]] b", add_special_tokens=False)["input_ids"]
    options: dict[str, Any] = {"decoder": "threshold", "budget": 4, "gen_length": 8}
    assert answer == generate(lm.model, [ids], **options)[0].text


def test_long_prompts_lose_their_beginning_with_a_warning(
    lm: XpredflowLM, caplog: pytest.LogCaptureFixture
) -> None:
    room = lm.model.max_length - 8
    short = "b" * room
    answers = lm.generate_until([ask("a" * 40 + short), ask(short)])
    assert answers[0] == answers[1]
    assert "1 prompts are too long" in caplog.text


def test_chat_prompts_are_those_of_the_engine(lm: XpredflowLM) -> None:
    rendered = lm.apply_chat_template([{"role": "user", "content": "one"}])
    assert rendered == "[user]one[assistant]"
    assert lm.chat_template(True) == lm.model.tokenizer.chat_template
    assert "/" not in lm.tokenizer_name
    assert lm.generate_until([ask(rendered)]) == texts(lm, chat=True)[:1]
    prefilled = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "so"}]
    assert lm.apply_chat_template(prefilled, add_generation_prompt=False).endswith("so")
    with pytest.raises(InputError, match="one template"):
        lm.chat_template("tool_use")


def test_forward_passes_are_kept_and_written(directory: str, tmp_path: Path) -> None:
    file = tmp_path / "passes.jsonl"
    lm = XpredflowLM(pretrained=directory, decoder="mask", gen_length=4, passes_file=str(file))
    lm.generate_until([ask("one", doc=0), ask("two", doc=1)])
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted((row["task"], row["doc"], row["passes"]) for row in rows) == [
        ("some_task", 0, 4),
        ("some_task", 1, 4),
    ]
    summary = {"answers": 2, "mean": 4.0, "median": 4.0, "max": 4}
    assert lm.get_model_info()["xpredflow"]["forward_passes"] == {"some_task": summary}
    with pytest.raises(InputError, match="cannot be written"):
        XpredflowLM(pretrained=directory, passes_file=str(tmp_path / "no" / "file"))


def test_likelihoods_come_from_text(directory: str) -> None:
    lm = XpredflowLM(pretrained=directory, mc_num=4)
    requests = [score("one", " a"), score("one ", "a"), score("", "abc"), score("one", "")]
    first, same, free, empty = lm.loglikelihood(requests)
    # up to rounding, which depends on the neighbours in a batch and on the CPU
    assert first[0] == pytest.approx(same[0], abs=1e-4)  # spaces at the seam: the continuation's
    assert first[1] == same[1]
    assert free[0] < 0
    assert empty == (0.0, True)
    [(alone, greedy)] = lm.loglikelihood(requests[2:3])
    assert (alone, greedy) == (pytest.approx(free[0], abs=1e-4), free[1])


def test_perplexity_is_refused_in_words(lm: XpredflowLM) -> None:
    with pytest.raises(NotImplementedError, match="measures perplexity"):
        lm.loglikelihood_rolling([score("one", "")])
