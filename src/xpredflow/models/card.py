"""The model card of a checkpoint: how it is decoded, what that reaches, and where it comes from.

Everything on it is read from files: config.json, generation_config.json, alignment.json and the
records of evaluations. What no file says is left out, never made up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.files import read_object
from xpredflow.models.defaults import REPORT, Defaults, read_defaults
from xpredflow.models.source import read_config

NEEDED = ("task", "decoder", "n", "accuracy", "passes_mean")  # of the record of an evaluation
# Settings of an alignment that a reader wants to know; the file beside the weights has them all.
ALIGNED_BY = (
    *("updates", "batch", "lr", "lora_rank", "lora_targets", "clean_entropy", "keep_reference"),
    *("on_policy", "on_policy_block", "seed"),
)


@dataclass(frozen=True)
class Origin:
    """What the user says of a checkpoint that is published."""

    name: str  # owner/name on the hub
    license: str
    base_model: str | None = None  # else the model that the alignment began with


def model_card(directory: Path, origin: Origin, results: Sequence[Mapping[str, Any]] = ()) -> str:
    """The text of README.md; `results` are rows as `xpredflow eval --json` prints them."""
    for row in results:
        missing = [name for name in NEEDED if name not in row]
        if missing:
            raise InputError(
                f"a record of an evaluation lacks {', '.join(missing)}: expected lines that"
                " `xpredflow eval --json` printed"
            )
    report = directory / REPORT
    alignment = read_object(report, "mend or remove it") if report.is_file() else None
    base = origin.base_model or _started_from(alignment)
    parts = [
        f"---\n{_metadata(origin, base, results)}\n---",
        f"# {origin.name.partition('/')[2]}",
        _about(directory, base),
        _usage(origin, read_defaults(directory)),
        _results(results),
        _alignment(alignment, base),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _metadata(origin: Origin, base: str | None, results: Sequence[Mapping[str, Any]]) -> str:
    """The head of the card in YAML, which the hub reads."""
    from huggingface_hub import EvalResult, ModelCardData  # slow to import

    found = [
        EvalResult(
            task_type="text-generation",
            dataset_type=str(row["task"]),
            dataset_name=str(row["task"]),
            metric_type="accuracy",
            metric_name=f"{_decoder(row)}, {row['passes_mean']:.1f} passes",
            metric_value=round(100 * float(row["accuracy"]), 2),
        )
        for row in results
    ]
    data = ModelCardData(
        license=origin.license,
        # only what can be a hub id: a path on someone's disk tells nobody anything
        base_model=base if base and base.count("/") == 1 and not Path(base).exists() else None,
        library_name="xpredflow",
        pipeline_tag="text-generation",
        tags=["masked-diffusion", "x-prediction-flow"],
        model_name=origin.name if found else None,
        eval_results=found or None,
    )
    return data.to_yaml()


def _about(directory: Path, base: str | None) -> str:
    kind = ", ".join(map(str, read_config(directory).get("architectures") or ["unnamed"]))
    of = f", from `{base}`" if base else ""
    return f"A masked diffusion language model in the published layout ({kind}){of}."


def _usage(origin: Origin, defaults: Defaults) -> str:
    rows = {
        "decoder": defaults.decoder or ("flow" if defaults.aligned else None),
        "step-size policy": _shipped(defaults.policy),
        "budget": defaults.steps,
        "response length": defaults.gen_length,
        "block length": defaults.block_length,
        **(defaults.rules or {}),
    }
    lines = [f"- {name}: `{value}`" for name, value in rows.items() if value is not None]
    said = "Decoded unless told otherwise with:\n\n" + "\n".join(lines) if lines else ""
    command = f'```sh\nxpredflow generate "..." --model {origin.name}\n```'
    return "## Use\n\n" + "\n\n".join(part for part in (command, said) if part)


def _shipped(policy: str | None) -> str | None:
    """A policy that lies beside the weights by its own name."""
    kind, colon, file = (policy or "").partition(":")
    return f"{kind}:{Path(file).name}" if colon and kind == "learned" else policy


def _results(results: Sequence[Mapping[str, Any]]) -> str:
    if not results:
        return ""
    lines = [
        "## Accuracy and forward passes",
        "",
        "| task | decoder | budget | accuracy (95 %) | problems | passes, mean | median, most |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in results:
        between = f" [{row['low']:.1%}, {row['high']:.1%}]" if {"low", "high"} <= {*row} else ""
        cells = (
            row["task"],
            f"`{_decoder(row)}`",
            row.get("budget", ""),
            f"{row['accuracy']:.1%}{between}",
            row["n"],
            f"{row['passes_mean']:.1f}",
            f"{row.get('passes_median', '')}, {row.get('passes_max', '')}",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    for row in results:
        if row.get("rules"):
            rules = ", ".join(f"{name}={value}" for name, value in row["rules"].items())
            lines += ["", f"Rules on {row['task']}, `{_decoder(row)}`: {rules}."]
    return "\n".join(lines)


def _decoder(row: Mapping[str, Any]) -> str:
    policy = row.get("policy")
    named = str(row["decoder"])
    return f"{named}, {_shipped(str(policy))}" if policy and str(policy) not in named else named


def _alignment(report: Mapping[str, Any] | None, base: str | None) -> str:
    if report is None:
        return ""
    settings = report.get("config", {})
    lines = [f"- {name}: {settings[name]}" for name in ALIGNED_BY if settings.get(name)]
    text = "## Alignment\n\nFor x-prediction flow, on the model's own answers; W_e was not changed."
    text += "\n\n" + "\n".join(lines) if lines else ""
    for when in ("before", "after"):
        found = report.get(when) or {}
        if {"agreement", "distance"} <= {*found}:
            text += (
                f"\n\nClean tokens kept {when} it, on {report.get('held_out', '?')} held-out"
                f" answers: {found['agreement']:.1%}; readout {found['distance']:.1%} away."
            )
    return text


def _started_from(report: Mapping[str, Any] | None) -> str | None:
    named = (report or {}).get("config", {}).get("model")
    return str(named) if named else None
