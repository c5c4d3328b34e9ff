"""What a built decoder says of itself: its name and every setting in force, as plain values."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from toy import ToyModel, prompts

from xpredflow import Flow, InputError, generate, make_decoder
from xpredflow.decoders import DECODERS, POLICIES, effective_settings
from xpredflow.policies import Constant
from xpredflow.policies.beta import BetaNetwork, LearnedPolicy
from xpredflow.settings import described
from xpredflow.types import Action

SPECS = [*DECODERS, *(f"flow:{name}" for name in POLICIES if name != "learned")]
VARIED = ["threshold:0.8+temperature=0.5", "remdm:conf", "flow:learned:tiny+tau=0.95"]


@pytest.mark.parametrize("spec", [*SPECS, *VARIED])
def test_they_are_plain_and_build_the_same_decoder_again(spec: str) -> None:
    decoder = make_decoder(spec)
    said = effective_settings(decoder)
    assert json.loads(json.dumps(said)) == said
    name = said["decoder"]
    assert name == spec.partition(":")[0]
    again = make_decoder(name, {key: value for key, value in said.items() if key != "decoder"})
    assert effective_settings(again) == said
    run: dict[str, Any] = {"gen_length": 12, "seed": 3}
    ours, theirs = (generate(ToyModel(), prompts(3), decoder=d, **run) for d in (decoder, again))
    assert [d.all_ids for d in ours] == [d.all_ids for d in theirs]


def test_the_flow_states_its_policy_and_all_its_rules() -> None:
    said = effective_settings(make_decoder("flow:constant:1/8", {"tau": 0.5}))
    assert (said["decoder"], said["policy"], said["tau"]) == ("flow", "constant:0.125", 0.5)
    assert {"reedit_margin", "top_k", "final"} <= said.keys()
    learned = effective_settings(make_decoder("flow:learned:tiny+policy_temperature=0.5"))
    assert (learned["policy"], learned["policy_temperature"]) == ("learned:tiny", 0.5)


def test_policies_without_a_name_are_described() -> None:
    in_memory = Flow(LearnedPolicy(BetaNetwork()))
    assert effective_settings(in_memory)["policy"] == "learned"

    def slowly(signals, progress, info) -> Action: ...  # type: ignore[empty-body]

    assert effective_settings(Flow(slowly))["policy"] == "slowly"
    assert effective_settings(Flow(Constant(0.25)))["policy"] == "constant:0.25"


def test_a_decoder_built_by_hand_is_called_as_its_class() -> None:
    @dataclass
    class Mine:
        speed: object = Constant

        def step(self, canvas, signals, info, space): ...
        def stop(self, canvas): ...
        def finish(self, canvas, space): ...

    said = effective_settings(Mine())  # type: ignore[arg-type]
    assert said == {"decoder": "mine", "speed": str(Constant)}


@pytest.mark.parametrize("name", DECODERS)
def test_every_option_of_a_discrete_decoder_says_what_it_is_for(name: str) -> None:
    if name == "flow":
        return
    for setting in described(DECODERS[name]):
        assert setting.help, f"{name}: {setting.name}"


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("threshold:0.8+threshold=0.9", {}, "threshold is given twice; give it once"),
        ("threshold:0.8", {"threshold": 0.9}, "in the decoder's spec and 0.9 beside it"),
        ("threshold+temprature=1", {}, "did you mean 'temperature'"),
        ("thresold:0.8", {}, "unknown decoder 'thresold': did you mean 'threshold'"),
    ],
)
def test_a_spec_says_everything_once(spec: str, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_decoder(spec, options)
