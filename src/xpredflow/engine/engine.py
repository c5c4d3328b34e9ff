"""A model with the options that all its calls share."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from xpredflow.engine import loop, text
from xpredflow.engine.prompts import Prompts
from xpredflow.engine.request import resolve
from xpredflow.engine.steps import Decoded, Step
from xpredflow.models.wrap import check_model
from xpredflow.types import Decoder, Model


class Engine:
    """What decodes: a loaded model, a decoder and options; a call's own options win.

    engine = Engine(load("tiny-aligned"), decoder="threshold:0.9", budget="1/2")
    print(engine.generate("Zoe has 25 pens, loses 7, buys 4. How many pens now? Use letters."))
    """

    def __init__(
        self, model: Model, *, decoder: str | Decoder | None = None, **options: Any
    ) -> None:
        check_model(model)
        self.model, self.decoder, self.options = model, decoder, options
        resolve(decoder, options)  # a misspelt option is said now, not with the first prompt

    def generate(self, prompts: Prompts, **options: Any) -> list[Decoded]:
        """Every prompt decoded; see `xpredflow.generate`."""
        return loop.generate(self.model, prompts, **self._merged(options))

    def steps(self, prompts: Prompts, **options: Any) -> Iterator[Step]:
        """One Step per forward pass of the batch: states, progress, what each pass did."""
        return loop.decode_steps(self.model, prompts, **self._merged(options))

    def stream(self, prompts: Prompts, **options: Any) -> Iterator[text.Partial]:
        """The text after every pass; see `xpredflow.stream`."""
        return text.stream(self.model, prompts, **self._merged(options))

    def astream(self, prompts: Prompts, **options: Any) -> AsyncIterator[text.Partial]:
        """The same as an async generator."""
        return text.astream(self.model, prompts, **self._merged(options))

    def _merged(self, options: dict[str, Any]) -> dict[str, Any]:
        own = {} if "decoder" in options else {"decoder": self.decoder}
        return {**own, **self.options, **options}
