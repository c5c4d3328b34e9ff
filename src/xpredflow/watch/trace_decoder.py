"""Lines of a trace back to Frames and answers: each line is checked, and all of them together."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from xpredflow.engine.steps import Decoded, StopReason
from xpredflow.errors import InputError
from xpredflow.tasks.base import Verdict
from xpredflow.watch.deltas import PARTS, RowColumns
from xpredflow.watch.text import TokenText
from xpredflow.watch.trace import Header, Layout, Trace

MOST_POSITIONS = 1_000_000  # a header must not make its reader run out of memory


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class LayoutLine(_Strict):
    row: int
    positions: list[tuple[int, int]]  # consecutive ones: the first, and how many
    budget: int
    context: list[int] | None = None


class HeaderLine(_Strict):
    kind: Literal["header"]
    format: Literal["xpredflow-trace"]
    version: Literal[2]
    model: str
    decoder: str
    seed: int
    prompts: list[Any]
    options: dict[str, Any]
    rules: dict[str, Any]
    layouts: list[LayoutLine]
    ends: list[int]
    title: str = ""


Column = tuple[list[int] | None, list[int]]


class FrameLine(_Strict):
    kind: Literal["frame"]
    row: int
    step: int
    span: tuple[int, int] | None = None
    tokens: Column | None = None
    progress: Column | None = None
    confidence: Column | None = None
    step_size: Column | None = None
    candidates: Column | None = None
    probabilities: Column | None = None
    reedited: list[int] = []
    committed: list[int] = []
    pieces: dict[Annotated[str, Field(pattern=r"^\d+( \d+)*$")], str] = {}


class DecodedLine(_Strict):
    kind: Literal["decoded"]
    row: int
    text: str
    ids: list[int]
    passes: int
    reason: Literal[*StopReason.__members__]  # type: ignore[valid-type]
    stop_reason: str
    progress: list[int]
    all_ids: list[int]
    shadow_positions: int = 0
    positions_read: int = 0


class VerdictLine(_Strict):
    kind: Literal["verdict"]
    row: int
    passed: bool
    reason: str


class EndLine(_Strict):
    kind: Literal["end"]
    frames: int
    answers: int


_LINE = TypeAdapter(
    Annotated[
        HeaderLine | FrameLine | DecodedLine | VerdictLine | EndLine, Field(discriminator="kind")
    ]
)


class TraceDecoder:
    """Lines back to traces, each checked and all of them together."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self.open: Trace | None = None
        self.rows: dict[int, RowColumns] = {}
        self.used: dict[int, int] = {}

    def add(self, text: str) -> None:
        """Take in a line; what is wrong with it is an InputError."""
        line = parsed(_LINE, text)
        if isinstance(line, HeaderLine):
            if self.open is not None:
                raise InputError("a header before the end of the trace above it")
            self.open = Trace(_header(line), [], [], {}, TokenText(None))
            self.rows = {one.row: RowColumns(one.positions) for one in self.open.header.layouts}
            self.used = dict.fromkeys(self.rows, 0)
        elif self.open is None:
            raise InputError(f"unexpected {line.kind!r}; expected a header")
        elif isinstance(line, EndLine):
            self._end(self.open, line)
        elif line.row not in self.rows:
            raise InputError(f"row {line.row}, which the header does not name")
        elif isinstance(line, FrameLine):
            self._frame(self.open, line)
        elif isinstance(line, DecodedLine):
            self.open.decoded.append(_decoded(line))
        else:
            self.open.verdicts[line.row] = Verdict(line.passed, line.reason)

    def _frame(self, trace: Trace, line: FrameLine) -> None:
        if line.step != self.used[line.row]:
            raise InputError(
                f"pass {line.step} of row {line.row}; expected {self.used[line.row]}: lines are"
                " missing or out of order"
            )
        self.used[line.row] += 1
        trace.frames.append(self.rows[line.row].frame(line.model_dump()))
        known = trace.text.known
        known |= {tuple(map(int, run.split())): text for run, text in line.pieces.items()}

    def _end(self, trace: Trace, line: EndLine) -> None:
        found = (len(trace.frames), len(trace.decoded))
        if found != (line.frames, line.answers):
            raise InputError(
                f"{found[0]} frames and {found[1]} answers; {line.frames} and {line.answers} were"
                " written: lines are missing"
            )
        self.traces.append(trace)
        self.open = None


def parsed(adapter: TypeAdapter[Any], text: str) -> Any:
    """A line by its model; the first thing that is wrong with it as an InputError."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise InputError(
                f"not a line of JSON ({first['msg']}): it is cut off or no trace"
            ) from (None)
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"a damaged line ({where or 'kind'}: {first['msg']})") from None


def _header(line: HeaderLine) -> Header:
    if len(line.layouts) != len(line.prompts):
        raise InputError(f"{len(line.prompts)} prompts and {len(line.layouts)} layouts in a header")
    layouts = []
    for one in line.layouts:
        if any(first < 0 or count < 1 for first, count in one.positions):
            raise InputError(f"positions of row {one.row}: expected runs of one or more")
        if sum(count for _, count in one.positions) > MOST_POSITIONS:
            raise InputError(f"row {one.row} has more than {MOST_POSITIONS} positions")
        places = [first + i for first, count in one.positions for i in range(count)]
        layouts.append(Layout(one.row, places, one.budget, one.context))
    values = line.model_dump(exclude={"kind", "format", "version", "layouts"})
    return Header(**values, layouts=layouts)


def _decoded(line: DecodedLine) -> Decoded:
    values = line.model_dump(exclude={"kind"})
    progress = [value / PARTS for value in line.progress]
    return Decoded(**{**values, "reason": StopReason[line.reason], "progress": progress})
