"""GSM8K: school arithmetic in words; graded by the last number of the answer."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.tasks.base import Message, Problem, Runner, Verdict
from xpredflow.tasks.published.benchmark import Benchmark, Template
from xpredflow.tasks.rows import Rows, read_rows

# Rows of the training split, counted from 0, that are the worked examples in LLaDA's prompt.
SHOTS = (7364, 1708, 669, 6724)
_NUMBER = r"-?\d+\.\d+|-?\d+"
_MARKED = re.compile(r"####\s*\$?(-?[\d,]*\.?\d+)")


def _question(text: str) -> str:
    return f"Question: {text}\nLet's think step by step\nAnswer:"


def _instruct(row: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> list[Message]:
    messages = []
    for shot in shots:
        working = re.sub(r"<<.*?>>", "", shot["answer"]).replace("#### ", "The answer is ") + "\n"
        messages.append({"role": "user", "content": _question(shot["question"])})
        messages.append({"role": "assistant", "content": working})
    return [*messages, {"role": "user", "content": _question(row["question"])}]


def _base(row: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(message["content"] for message in _instruct(row, shots))


def _zero_shot(row: Mapping[str, Any], shots: Sequence[Mapping[str, Any]]) -> list[Message]:
    return [{"role": "user", "content": row["question"]}]


def last_number(text: str) -> str:
    """The number after ####, which GSM8K's own answers have; else the last one, as published."""
    if marked := _MARKED.findall(text):
        return marked[-1].replace(",", "")
    numbers = re.findall(_NUMBER, text.split("Question:")[0])
    return numbers[-1] if numbers else ""


def _after_the_answer_is(text: str) -> str:
    found = re.search(r"The Answer is[:\s]*(-?\d+(?:\.\d+)?)", text, re.IGNORECASE)
    return found.group(1) if found else last_number(text)


def _beside(path: str | Path | None) -> Path | None:
    """The training file that lies beside a test file, if there is one."""
    if path is None or "test" not in Path(path).name:
        return None
    train = Path(path).with_name(Path(path).name.replace("test", "train"))
    return train if train.is_file() else None


class Gsm8k(Benchmark):
    """1,319 test problems, 4-shot with worked examples."""

    name = "gsm8k"
    response_length = 512
    runs_programs = False
    hub_id = "openai/gsm8k"
    fields = {"question": str, "answer": str}  # noqa: RUF012
    splits = ("test", "train")
    templates = {  # noqa: RUF012
        "llada-instruct": Template(_instruct, last_number),
        "llada-base": Template(_base, _after_the_answer_is),
        "zero-shot": Template(_zero_shot, last_number, few_shot=False),
    }

    def __init__(
        self,
        path: str | Path | None = None,
        template: str | None = None,
        train_path: str | Path | None = None,
    ) -> None:
        """`path` holds the test split; `train_path` the other one, with the worked examples.

        By default it is the file beside `path` that has `train` in its name for `test`, or the
        hub's.
        """
        super().__init__(path, template)
        self._train_source = train_path or _beside(path) or self.hub_id

    def score(self, problem: Problem, text: str, run: Runner | None = None) -> Verdict:
        """Whether the number found is the answer; nothing is run."""
        given, expected = self.extract(problem, text), problem.meta["answer"]
        if not given:
            return Verdict(False, "no number in the text")
        passed = len(given) < 30 and abs(float(given) - expected) < 1e-6
        return Verdict(passed, "right" if passed else f"{given[:40]} instead of {expected}")

    def published_answer(self, problem: Problem) -> str:
        return self._by_id[problem.id]["answer"]

    def _grading(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {"answer": int(row["answer"].rpartition("####")[2].replace(",", ""))}

    def _id(self, row: Mapping[str, Any]) -> str:
        return row["id"]

    def rows(self, split: str) -> Rows:
        if split in self.splits and split not in self._rows:
            self._rows[split] = self._numbered(split)
            vars(self).pop("_by_id", None)  # computed again, with the new rows
        return super().rows(split)

    def _load(self) -> dict[str, Rows]:
        return {}  # each split is a file of its own, read when it is asked for

    @cached_property
    def shots(self) -> Rows:
        rows = self.rows("train")
        if len(rows) <= max(SHOTS):
            raise InputError(
                f"{str(self._train_source)!r} has {len(rows)} rows, but the 4-shot prompt shows row"
                f" {max(SHOTS)}: give the whole training split (7473 rows) or template zero-shot"
            )
        return [rows[number] for number in SHOTS]

    def _numbered(self, split: str) -> Rows:
        source = self.source if split == "test" else self._train_source
        rows = read_rows(source, [f"main/{split}-00000-of-00001.parquet"], self.fields)
        return [{**row, "id": f"gsm8k/{split}/{number}"} for number, row in enumerate(rows)]
