"""LLaDA2.1's two modes (arXiv 2602.08676): token editing under the thresholds of each."""

from typing import ClassVar, Literal

from xpredflow.decoders.editing import Editing
from xpredflow.registry import DECODERS
from xpredflow.settings import Field, settings

Mode = Literal["quality", "speed"]
# mask-to-token and token-to-token threshold
MODES: dict[Mode, tuple[float, float]] = {"quality": (0.7, 0.5), "speed": (0.5, 0.0)}


@settings
class ModeOptions:
    """A mode, and what may be set apart from it."""

    mode: Mode = Field("quality", description="quality: 0.7 and 0.5; speed: 0.5 and 0")
    threshold: float | None = Field(
        None, ge=0, le=1, description="commit where c reaches this; none: as the mode says"
    )
    edit_threshold: float | None = Field(
        None, ge=0, description="overwrite where another token exceeds this; none: by the mode"
    )
    max_post_steps: int = Field(16, ge=0, description="passes after everything is filled")
    temperature: float = Field(0.0, ge=0, description="of the token draw; 0 is greedy")


@settings
class LLaDA21(Editing):
    """Token editing with the thresholds of a mode."""

    name: ClassVar[str] = "llada2.1"
    mode: Mode = Field("quality", description="whose thresholds these are")


@DECODERS.register(
    "llada2.1",
    summary="token editing in LLaDA2.1's modes: quality (0.7, 0.5) or speed (0.5, 0)",
    main="mode",
    options=ModeOptions,
)
def build_llada21(
    mode: Mode = "quality",
    threshold: float | None = None,
    edit_threshold: float | None = None,
    max_post_steps: int = 16,
    temperature: float = 0.0,
) -> LLaDA21:
    """The mode's thresholds, unless they are given."""
    commit, edit = MODES[mode]
    return LLaDA21(
        temperature=temperature,
        threshold=commit if threshold is None else threshold,
        edit_threshold=edit if edit_threshold is None else edit_threshold,
        max_post_steps=max_post_steps,
        mode=mode,
    )
