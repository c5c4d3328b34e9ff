"""What is asked of a decode: options sorted by who declares them, defaults of the checkpoint.

An option that was given wins over what the checkpoint's generation_config.json says, and that over
the defaults here. Whatever decides the result without having been named is said in one line.
"""

import logging
from typing import Any, Literal, TypedDict

from xpredflow.decoders import DECODERS, make_decoder, option_owner
from xpredflow.decoders.early_exit import EarlyExit, ExitRule, Schedule
from xpredflow.decoders.spec import parse_spec, with_options
from xpredflow.engine.budget import Budget, parse_budget
from xpredflow.engine.cache_slots import CacheKind, check_cache
from xpredflow.errors import InputError, unknown_name
from xpredflow.flow_extensions import RULE_SETS
from xpredflow.models.defaults import NO_DEFAULTS, Defaults
from xpredflow.settings import Field, configured, option_names, settings
from xpredflow.types import Decoder, Model, Policy

DEFAULT_DECODER = "flow"
DEFAULT_LENGTH = 128
# Other names that users know.
ALIASES = {"max_new_tokens": "gen_length", "steps": "budget"}
# The flow on weights that were never aligned: small moves confuse them, so sure positions jump.
TRAINING_FREE = {"rules": "training-free", "policy": "jump:0.9"}
_log = logging.getLogger("xpredflow")
_said: set[str] = set()


@settings
class Options:
    """How to decode, whatever the decoder; names are those of LLaDA's and Fast-dLLM's code."""

    gen_length: int = Field(DEFAULT_LENGTH, ge=1, description="positions of the response")
    max_gen_length: int | None = Field(
        None, ge=1, description="DAEDAL: gen_length grows up to this until the text would end"
    )
    eos_confidence_threshold: float = Field(
        0.5, ge=0, le=1, description="DAEDAL: confidence in the end that is enough"
    )
    eos_check_tokens: int = Field(32, ge=1, description="DAEDAL: end tokens that are looked at")
    expansion_factor: int = Field(8, ge=1, description="DAEDAL: positions added at a time")
    budget: Budget = Field(
        None, description="cap on forward passes per row: a number, or a share (1/4, 25%, full)"
    )
    block_length: int | None = Field(
        None, ge=1, description="none: the whole response, or a block-causal model's own"
    )
    seed: int = Field(0, ge=0, description="of everything that is drawn")
    max_batch: int | None = Field(
        None, ge=1, description="rows in one forward pass; none: what fits, 32 at most"
    )
    chat: bool | None = Field(None, description="none: the chat template where there is one")
    system: str | None = Field(None, description="system message of the chat")
    stop_at_eos: bool = Field(
        True, description="after a block with an end token, later blocks are not decoded"
    )
    logits_eos_inf: bool = Field(False, description="LLaDA: EOS is never predicted")
    confidence_eos_eot_inf: bool = Field(False, description="LLaDA: end tokens are last")
    cfg_scale: float = Field(
        0.0, ge=0, description="LLaDA: classifier-free guidance; a step then costs two passes"
    )
    cache: CacheKind | None = Field(
        None,
        description="Fast-dLLM: keep keys and values before a block (prefix) or around it (dual)"
        " from its first pass on; approximate",
    )
    early_exit: Schedule | None = Field(
        None, description="SchED: end when the mean margin reaches a bound that falls in this way"
    )
    early_exit_high: float | None = Field(None, ge=0, description="none: 7.5 logits at first")
    early_exit_low: float | None = Field(None, ge=0, description="none: 0 at the budget's end")
    early_exit_slope: float | None = Field(None, gt=0, description="none: 2, of the schedule exp")
    trace: bool = Field(False, description="keep every step in Decoded.trace")
    first_row: int = Field(0, ge=0, description="rows draw randomness by their number")

    def __post_init__(self) -> None:
        parse_budget(self.budget)


class DecodeOptions(TypedDict, total=False):
    """Every option of the loop and of the decoders that come with the package.

    A misspelt one is found by a type checker, and refused with the nearest name at run time.
    `xpredflow decoders NAME` says what each does.
    """

    # the loop
    gen_length: int
    max_new_tokens: int
    max_gen_length: int | None
    eos_confidence_threshold: float
    eos_check_tokens: int
    expansion_factor: int
    budget: Budget
    steps: Budget
    block_length: int | None
    seed: int
    max_batch: int | None
    chat: bool | None
    system: str | None
    stop_at_eos: bool
    logits_eos_inf: bool
    confidence_eos_eot_inf: bool
    cfg_scale: float
    cache: CacheKind | None
    early_exit: Schedule | None
    early_exit_high: float | None
    early_exit_low: float | None
    early_exit_slope: float | None
    trace: bool
    first_row: int
    # flow: the policy and the paper's rules, then ours
    policy: str | Policy
    policy_temperature: float | None
    rules: Literal["auto", "paper", "policy", "training-free"]
    reedit_margin: float | None
    reedit_when: Literal["before", "after"]
    commit: Literal["before", "after", "off"]
    commit_max_progress: float
    tau: float
    clamp: float
    top_k: int | None
    final: Literal["state", "prediction"]
    commit_threshold: float | None
    commit_entropy: float | None
    trust: Literal["predicted", "held"]
    confirm: bool
    max_idle_passes: int | None
    # the other decoders
    temperature: float
    remasking: Literal["low_confidence", "random", "margin", "entropy"]
    threshold: float | None
    factor: float
    ending: Literal["code", "paper"]
    gamma: float
    kl_threshold: float
    history: int
    low_threshold: float
    weight: float
    decay: float
    boost: float
    threshold_back: float
    n: int
    edit_threshold: float | None
    max_post_steps: int
    mode: Literal["quality", "speed"]
    stop_confidence: float
    strategy: Literal["cap", "rescale", "conf", "loop"]
    eta: float | None
    t_on: float
    t_off: float
    alpha_on: float
    k: int
    omega_s: float
    omega_a: float
    omega_b: float
    alpha: float
    beta: float
    js_threshold: float
    branches: int


def resolve(
    decoder: str | Decoder | None, options: dict[str, Any], model: Model | None = None
) -> tuple[Options, Decoder]:
    """Options of the loop and the decoder that is built; a name that nobody declares is an error.

    Without a model nothing is known of its defaults: that checks what was given, before loading.
    """
    defaults = getattr(model, "defaults", None) or NO_DEFAULTS
    chosen: str | Decoder = decoder or defaults.decoder or DEFAULT_DECODER
    given = _renamed(options)
    if isinstance(chosen, str):
        spec = parse_spec(chosen)
        given = with_options(spec, given)
        chosen = spec.name if spec.value is None else f"{spec.name}:{spec.value}"
        main = DECODERS.entry(spec.name).about.get("main")
        if spec.value is not None and main in given:
            raise InputError(
                f"{main} is {spec.value!r} in {chosen!r} and {given[main]!r} beside it: give it"
                " once"
            )
        if spec.name == "flow" and model is not None:
            named = {**given, "policy": spec.value} if spec.value is not None else given
            given = _flow_defaults(model.name, defaults, named) | given
    own, owner = option_names(Options), option_owner(chosen)
    theirs = option_names(owner) if owner else []
    for name in given:
        if name not in own and name not in theirs:
            where = f" for decoder {chosen!r}" if owner else " beside a built decoder"
            raise unknown_name("option", name, [*own, *theirs, *ALIASES], where)
    mine = _loop_defaults(defaults) | {n: v for n, v in given.items() if n in own}
    rest = {name: value for name, value in given.items() if name not in own}
    settings = configured(Options, mine, "decoding")
    check_cache(settings.cache, settings.cfg_scale, model)
    return settings, _with_exit(make_decoder(chosen, rest), settings)


def _with_exit(decoder: Decoder, options: Options) -> Decoder:
    """The decoder with an early exit around it, if one is asked for."""
    rule = {n: getattr(options, n) for n in option_names(ExitRule)}
    given = {name: value for name, value in rule.items() if value is not None}
    if given and options.early_exit is None:
        name, value = next(iter(given.items()))
        raise InputError(f"{name} is {value}, but early_exit is off: give a schedule, linear")
    return EarlyExit(decoder, ExitRule(**given)) if given else decoder


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Options under our own names; nothing may be said twice."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        own = ALIASES.get(name, name)
        if own in found:
            other = next((alias for alias, of in ALIASES.items() if of == own), own)
            raise InputError(f"{own} was given twice: {other} is another name for it")
        found[own] = value
    return found


def _loop_defaults(defaults: Defaults) -> dict[str, Any]:
    said = {
        "gen_length": defaults.gen_length,
        "block_length": defaults.block_length,
        "budget": defaults.steps,
    }
    return {name: value for name, value in said.items() if value is not None}


def _flow_defaults(model: str, defaults: Defaults, given: dict[str, Any]) -> dict[str, Any]:
    """The policy and rules that the checkpoint asks for, as far as they were not named."""
    if not defaults.aligned:
        return _training_free(model, given)
    if "policy" in given or defaults.policy is None:
        return {}
    if "rules" in given:  # another set of rules under the checkpoint's own policy
        return {"policy": defaults.policy}
    return {"policy": defaults.policy, **(defaults.rules or {})}


def _training_free(model: str, given: dict[str, Any]) -> dict[str, Any]:
    """No re-editing, and what is sure is committed at once; unless other rules were named."""
    if "rules" in given:
        return {}
    own = RULE_SETS["training-free"] | TRAINING_FREE
    said = ", ".join(f"{n}={'off' if v is None else v}" for n, v in own.items() if n not in given)
    say_once(
        f"note: {model!r} was not aligned for flow, which therefore decodes by a training-free rule"
        f" set ({said}); align it with `xpredflow align`, or name the rules (rules=paper)"
    )
    return {name: value for name, value in TRAINING_FREE.items() if name not in given}


def say_once(note: str) -> None:
    """One line on standard error, or wherever the program's logging sends it."""
    if note not in _said:
        _said.add(note)
        _log.warning(note)
