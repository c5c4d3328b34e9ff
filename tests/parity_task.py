"""A task of token ids that chance solves half of the time, so that groups of rollouts are mixed."""

from xpredflow.tasks import Problem, Verdict


class Words:
    """In place of a tokenizer: ids as text."""

    chat_template = None

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        return " ".join(map(str, ids))


class Parity:
    """Right is an answer whose tokens have an even sum."""

    name = "parity"
    response_length = 8
    runs_programs = False

    def problem(self, split: str, index: int) -> Problem:
        return Problem(f"{split}/{index}", "", 1, {"messages": [index % 50, index % 7, 3]})

    def score(self, problem: Problem, text: str, run=None) -> Verdict:
        return Verdict(sum(map(int, text.split())) % 2 == 0, "the parity of the sum")

    def size(self, split: str) -> int:
        return 50

    def count_problems(self) -> int:
        return 100
