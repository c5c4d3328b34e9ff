"""A model with the options that all its calls share."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Unpack

from xpredflow.engine import loop, text
from xpredflow.engine.prompts import Prompts
from xpredflow.engine.request import DecodeOptions, resolve
from xpredflow.engine.session import Session
from xpredflow.engine.steps import Decoded, Step
from xpredflow.models.wrap import check_model
from xpredflow.types import Decoder, Model


class Engine:
    """What decodes: a loaded model, a decoder and options; a call's own options win.

    engine = Engine(load("tiny-aligned"), decoder="threshold:0.9", budget="1/2")
    print(engine.generate("Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."))
    """

    def __init__(
        self,
        model: Model,
        *,
        decoder: str | Decoder | None = None,
        **options: Unpack[DecodeOptions],
    ) -> None:
        check_model(model)
        self.model, self.decoder, self.options = model, decoder, options
        resolve(decoder, dict(options))  # a misspelt option is said now, not with the first prompt

    def generate(self, prompts: Prompts, **options: Unpack[DecodeOptions]) -> list[Decoded]:
        """Every prompt decoded; see `xpredflow.generate`."""
        return loop.generate(self.model, prompts, **self._merged(options))

    def steps(self, prompts: Prompts, **options: Unpack[DecodeOptions]) -> Iterator[Step]:
        """One Step per forward pass of the batch: states, progress, what each pass did."""
        return loop.decode_steps(self.model, prompts, **self._merged(options))

    def stream(self, prompts: Prompts, **options: Unpack[DecodeOptions]) -> Iterator[text.Partial]:
        """The text after every pass; see `xpredflow.stream`."""
        return text.stream(self.model, prompts, **self._merged(options))

    def astream(
        self, prompts: Prompts, **options: Unpack[DecodeOptions]
    ) -> AsyncIterator[text.Partial]:
        """The same as an async generator."""
        return text.astream(self.model, prompts, **self._merged(options))

    def session(self, max_batch: int | None = None) -> Session:
        """Rows that come and go one by one, each with options of its own; see `Session`."""
        options = {"max_batch": max_batch} if max_batch is not None else {}
        return Session(self.model, **self._merged(options))  # type: ignore[typeddict-item]

    def _merged(self, options: DecodeOptions) -> dict[str, Any]:
        return {"decoder": self.decoder, **self.options, **options}
