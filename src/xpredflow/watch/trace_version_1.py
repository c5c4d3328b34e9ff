"""Traces of version 1, which had no candidates and no texts of tokens: read, never written."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from xpredflow.engine.steps import Decoded, Frame, StopReason
from xpredflow.errors import InputError
from xpredflow.watch.text import TokenText
from xpredflow.watch.trace import Header, Layout, Trace
from xpredflow.watch.trace_decoder import parsed


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class HeaderLine(_Line):
    model_config = ConfigDict(extra="ignore")
    kind: Literal["header"]
    model: str
    decoder: str
    seed: int
    prompts: list[Any]
    options: dict[str, Any] = {}


class FrameLine(_Line):
    kind: Literal["frame"]
    row: int
    step: int
    positions: list[int]
    tokens: list[int]
    progress: list[float]
    confidence: list[float]
    reedited: list[bool]
    committed: list[bool]


class DecodedLine(_Line):
    kind: Literal["decoded"]
    row: int
    text: str
    ids: list[int]
    passes: int
    reason: Literal[*StopReason.__members__]  # type: ignore[valid-type]
    stop_reason: str
    progress: list[float]
    all_ids: list[int]
    shadow_positions: int = 0


_LINE = TypeAdapter(Annotated[HeaderLine | FrameLine | DecodedLine, Field(discriminator="kind")])


class Version1Decoder:
    """Its lines as a trace; tokens are shown by their numbers."""

    def __init__(self) -> None:
        self.header: HeaderLine | None = None
        self.frames: list[Frame] = []
        self.decoded: list[Decoded] = []
        self.open = None  # this version does not say where it ends

    def add(self, text: str) -> None:
        """Take in a line; what is wrong with it is an InputError."""
        line = parsed(_LINE, text)
        if isinstance(line, HeaderLine):
            self.header = line
        elif isinstance(line, FrameLine):
            columns = line.model_dump(exclude={"kind"})
            if len({len(values) for values in columns.values() if isinstance(values, list)}) > 1:
                raise InputError("the lists of a frame must have one length")
            self.frames.append(Frame(**columns))
        else:
            values = line.model_dump(exclude={"kind"})
            self.decoded.append(Decoded(**{**values, "reason": StopReason[line.reason]}))

    @property
    def traces(self) -> list[Trace]:
        """The one trace; where each row is open is read off its frames."""
        assert self.header is not None
        positions: dict[int, dict[int, None]] = {}
        used: dict[int, int] = {}
        for frame in self.frames:
            positions.setdefault(frame.row, {}).update(dict.fromkeys(frame.positions))
            used[frame.row] = used.get(frame.row, 0) + 1
        first = int(self.header.options.get("first_row", 0))
        rows = range(first, first + len(self.header.prompts))
        layouts = [Layout(row, sorted(positions.get(row, {})), used.get(row, 0)) for row in rows]
        header = Header(**self.header.model_dump(exclude={"kind"}), layouts=layouts)
        if positions.keys() - set(rows):
            raise InputError("frames of a row that the header has no prompt for")
        return [Trace(header, self.frames, self.decoded, {}, TokenText(None))]
