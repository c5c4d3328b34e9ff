"""Problems on which verdicts differ, as pages and an index."""

import re
from pathlib import Path

import pytest
from made_up import measured
from toy import ToyModel

from xpredflow import InputError
from xpredflow.evaluation.samples import Sample
from xpredflow.experiments.compare import compare
from xpredflow.experiments.disagreements import best_settings, disagreements
from xpredflow.experiments.parallelism import Point
from xpredflow.tasks import Problem, SimpleTask


def point(decoder: str, right: int, share: float, passed: list[bool]) -> Point:
    found = measured(right, 8)
    samples = tuple(
        Sample(number, str(number), "p", "a", mark, "", 1, 1, 0)
        for number, mark in enumerate(passed)
    )
    return Point("t", decoder, "", share, type(found)(**{**found.__dict__, "samples": samples}))


def test_each_decoder_stands_at_its_best_and_four_at_most() -> None:
    points = [point("a", 50, 0.2, []), point("a", 60, 0.9, []), point("a", 60, 0.5, [])]
    points += [
        point(name, right, 0.5, []) for name, right in zip("bcde", (1, 2, 3, 4), strict=True)
    ]
    chosen = best_settings(points)
    assert [one.decoder for one in chosen] == ["a", "c", "d", "e"]
    assert chosen[0].share == 0.5


def test_a_disagreement_is_a_difference_of_verdicts() -> None:
    one, other = [True, True, False, False], [True, False, True, False]
    assert disagreements([point("a", 1, 1.0, one), point("b", 1, 1.0, other)]) == [1, 2]


class Even(SimpleTask):
    """Right if the letters of the answer sum to an even number: as good as drawn."""

    name = "even"
    response_length = 8

    def problems(self):
        for i in range(12):
            yield Problem(str(i), f"<b>{i}</b>")

    def grade(self, problem, text):
        return sum(map(ord, text)) % 2 == 0


class Digits(ToyModel):
    """Reads and writes its tokens as letters."""

    class Tokenizer:
        chat_template = None

        def __call__(self, text, add_special_tokens=False):
            return {"input_ids": [ord(letter) % 20 for letter in text]}

        def decode(self, ids, skip_special_tokens=False):
            return "".join("0123456789abcdefghij~~~"[token] for token in ids)

    def __init__(self):
        super().__init__()
        self.tokenizer = self.Tokenizer()


def test_pages_are_written_and_listed(tmp_path: Path) -> None:
    out = tmp_path / "pages"
    found = compare(
        Digits(), Even(), ["mask", "mask+temperature=3"], budgets=["full"], split="all",
        limit=12, traces=out,
    )  # fmt: skip
    numbers = disagreements(best_settings(found.points))
    assert numbers
    index = (out / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', index)
    assert links == [f"even-{number}.html" for number in numbers]
    assert {path.name for path in out.iterdir()} == {"index.html", *links}
    assert f"differ on {len(numbers)} of 12" in index
    assert "&lt;b&gt;" in index
    assert "<b>" not in index
    assert index.count("✗ wrong") == index.count("✓ right") == len(numbers)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="name a directory"):
        compare(Digits(), Even(), ["mask"], traces=tmp_path / "file")
