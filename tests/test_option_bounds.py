"""Every option at every value that it declares, and at many that it does not: never a traceback."""

import dataclasses
import math
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy import ToyModel, prompts

from xpredflow import InputError, generate, make_decoder
from xpredflow.decoders import DECODERS, POLICIES, option_owner
from xpredflow.engine.request import Options
from xpredflow.policies.beta_config import BetaConfig
from xpredflow.settings import LARGEST, LARGEST_WHOLE, configured, described
from xpredflow.training.align.config import AlignConfig
from xpredflow.training.policy.config import PolicyConfig
from xpredflow.training.pretrain.config import PretrainConfig
from xpredflow.training.softmask.config import SoftMaskConfig

TRAININGS = (AlignConfig, PolicyConfig, PretrainConfig, SoftMaskConfig, BetaConfig)
MODEL = ToyModel()
# What a user may type; most of it is nothing.
NONSENSE = st.one_of(
    st.sampled_from(["-1", "nan", "inf", "-inf", "1e308", "-1e308", "1e999999999", "0", "", "off"]),
    st.sampled_from(["1/0", "9" * 5000, "0x10", "true", "None", "[]", "\u2028", "\ud800", "1_000"]),
    st.text(max_size=8),
    st.integers(),
    st.floats(),
    st.none(),
    st.booleans(),
    st.lists(st.integers(), max_size=2),
)


def bounds(cls: Any, name: str) -> dict[str, float]:
    """What a field declares: gt, ge, lt and le."""
    found: dict[str, float] = {}
    for mark in getattr(cls, "__pydantic_fields__", {})[name].metadata:
        found |= {k: getattr(mark, k) for k in ("gt", "ge", "lt", "le") if hasattr(mark, k)}
    return found


def values(hint: Any, limits: dict[str, float]) -> st.SearchStrategy[Any]:
    """Every value of a type within its bounds, the ends among them."""
    if get_origin(hint) in (Union, UnionType):
        return st.one_of(*(values(part, limits) for part in get_args(hint)))
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if hint is bool:
        return st.booleans()
    if hint is NoneType:
        return st.none()
    if hint is int:
        low = math.ceil(limits.get("ge", limits.get("gt", -LARGEST_WHOLE - 1) + 1))
        high = math.floor(limits.get("le", limits.get("lt", LARGEST_WHOLE + 1) - 1))
        return st.integers(low, high) | st.sampled_from([low, high])
    if hint is float:
        low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
        return st.floats(
            -LARGEST if low is None else low,
            LARGEST if high is None else high,
            exclude_min="gt" in limits,
            exclude_max="lt" in limits,
        )
    return st.none()


@st.composite
def options_of(draw: st.DrawFn, cls: Any) -> dict[str, Any]:
    """Some of the options that a class declares, each at any of its values."""
    found = {}
    for setting in described(cls):
        if draw(st.booleans()):
            value = draw(values(setting.hint, bounds(cls, setting.name)))
            if value is not None or NoneType in get_args(setting.hint):
                found[setting.name] = value
    return found


@pytest.mark.parametrize("name", list(DECODERS))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))  # type: ignore[call-overload]
@given(data=st.data())
def test_decoders_take_all_that_they_declare(name: str, data: st.DataObject) -> None:
    owner = option_owner(name)
    given_options = data.draw(options_of(owner)) if dataclasses.is_dataclass(owner) else {}
    given_options.pop("rules", None)
    try:
        decoder = make_decoder(name, given_options)
    except InputError:
        return
    for done in generate(MODEL, prompts(2), decoder=decoder, gen_length=6, seed=1):
        assert not done.failed, done.stop_reason
        assert len(done.all_ids) == 6


@pytest.mark.parametrize("name", list(POLICIES))
@settings(max_examples=30, deadline=None)
@given(value=NONSENSE)
def test_policies_take_or_refuse_any_value(name: str, value: Any) -> None:
    try:
        decoder = make_decoder("flow", {"policy": f"{name}:{value}"})
    except InputError:
        return
    assert all(
        not done.failed for done in generate(MODEL, prompts(1), decoder=decoder, gen_length=4)
    )


@pytest.mark.parametrize("owner", [*TRAININGS, Options], ids=lambda cls: cls.__name__)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_settings_are_taken_within_their_bounds_and_refused_in_words(owner, data) -> None:
    declared = [setting.name for setting in described(owner)]
    for found in (
        data.draw(options_of(owner)),
        {data.draw(st.sampled_from(declared)): data.draw(NONSENSE)},
    ):
        try:
            made = configured(owner, found, "a test")
        except InputError:
            continue
        for name in declared:
            value = getattr(made, name)
            if isinstance(value, float):
                assert math.isfinite(value)


@pytest.mark.parametrize("name", list(DECODERS))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_nonsense_is_refused_in_words(name: str, data: st.DataObject) -> None:
    names = [setting.name for setting in described(option_owner(name))]
    if not names:
        return
    option = {data.draw(st.sampled_from(names)): data.draw(NONSENSE)}
    try:
        decoder = make_decoder(name, option)
    except InputError:
        return
    assert all(
        not done.failed for done in generate(MODEL, prompts(1), decoder=decoder, gen_length=4)
    )
