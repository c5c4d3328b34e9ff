"""Align a published model, train its policy, measure both and write the card: one after the other.

    python recipes/align_published.py qwen3-0.6b-cpu       a laptop: 16 GB of memory, a night
    python recipes/align_published.py qwen3-0.6b           one GPU with 16 GB
    python recipes/align_published.py llada-8b-24gb        LoRA on one GPU with 24 GB
    python recipes/align_published.py llada-8b-80gb        LoRA on one GPU with 80 GB
    python recipes/align_published.py llada2-mini          LoRA on one GPU with 80 GB

Each line is a command of xpredflow, printed before it runs; killed, the same command goes on where
it was. runs/NAME/align/model is the result, with its card; `xpredflow push` publishes it. Hours and
memory are estimates: none of these models was at hand. docs/recipes.md says how they are made.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

RUNS = Path("runs")


@dataclass(frozen=True)
class Recipe:
    """What differs between models and machines; all flags are those of the commands."""

    model: str
    task: str  # graded, so that right answers can be told: a task's name or a file
    answers: int
    answer_flags: Sequence[str] = ()
    align_flags: Sequence[str] = ()
    policy_flags: Sequence[str] = ()
    measured: int = 200
    license: str = "other"


LORA = ("--lora-rank", "16", "--lr", "1e-4", "--checkpointing")
GSM8K = "gsm8k"
QWEN = "dllm-hub/Qwen3-0.6B-diffusion-mdlm-v0.1"
SHORT = ("-o", "gen_length=128")
RECIPES = {
    "qwen3-0.6b-cpu": Recipe(
        model=QWEN,
        task=GSM8K,
        answers=512,
        answer_flags=("-d", "threshold:0.9", *SHORT),
        align_flags=(
            "-n",
            "100",
            "--batch",
            "8",
            "--accumulate",
            "8",
            "--lora-rank",
            "8",
            "--lr",
            "2e-4",
            "--chunk",
            "64",
            "--reference-every",
            "10",
        ),
        policy_flags=("-n", "20", "--prompts", "4", "--group", "4", "--budget", "1/4"),
        measured=50,
    ),
    "qwen3-0.6b": Recipe(
        model=QWEN,
        task=GSM8K,
        answers=4000,
        answer_flags=SHORT,
        align_flags=("-n", "300", "--accumulate", "4", "--lr", "5e-5", "--checkpointing"),
        policy_flags=("-n", "100", "--budget", "1/4"),
    ),
    "llada-8b-24gb": Recipe(
        model="GSAI-ML/LLaDA-8B-Instruct",
        task=GSM8K,
        answers=4000,
        answer_flags=("-o", "gen_length=256"),
        align_flags=(
            "-n",
            "200",
            "--accumulate",
            "32",
            "--chunk",
            "64",
            *LORA,
            "--lora-targets",
            "q_proj,v_proj",
            "--reference-every",
            "10",
        ),
        policy_flags=("-n", "100", "--budget", "1/4"),
        license="mit",
    ),
    "llada-8b-80gb": Recipe(
        model="GSAI-ML/LLaDA-8B-Instruct",
        task=GSM8K,
        answers=10_000,
        answer_flags=("-o", "gen_length=256"),
        align_flags=("-n", "400", "--accumulate", "4", *LORA),
        policy_flags=("-n", "200", "--budget", "1/4"),
        license="mit",
    ),
    "llada2-mini": Recipe(
        model="inclusionAI/LLaDA2.0-mini",
        task=GSM8K,
        answers=10_000,
        answer_flags=("-o", "gen_length=256"),
        align_flags=(
            "-n",
            "400",
            "--accumulate",
            "8",
            *LORA,
            "--lora-targets",
            "query_key_value,dense",
        ),
        policy_flags=("-n", "200", "--budget", "1/4"),
        license="apache-2.0",
    ),
}


def commands(recipe: Recipe, out: Path) -> list[list[str]]:
    """The whole way, from the model's own answers to a card."""
    answers, run, policy = out / "own.jsonl", out / "align", out / "policy"
    model, measured = str(run / "model"), out / "measured"
    own = ["self-generate", "--data", recipe.task, "-m", recipe.model, "--out", str(answers)]
    begin = ["-m", recipe.model, "--answers", str(answers)]
    learn = ["train-policy", str(policy), "-m", model, "--task", recipe.task]
    check = ["eval", "-m", model, "-t", recipe.task, "--limit", str(recipe.measured)]
    flow = ["-d", "flow", "--policy", f"learned:{policy / 'best'}", "-b", "1/4"]
    card = ["push", model, f"you/{out.name}", "--license", recipe.license, "--card-only"]
    card += ["--base", recipe.model, "--policy", str(policy / "best"), "--overwrite"]
    return [
        [*own, "--limit", str(recipe.answers), *recipe.answer_flags],
        ["align", str(run), *begin, *recipe.align_flags, *_resumed(run)],
        [*learn, *recipe.policy_flags, *_resumed(policy)],
        [*check, *flow, "--out", str(measured / "flow")],
        [*check, "-d", "mask", "-b", "full", "--out", str(measured / "mask")],
        [*card, "--results", str(measured / "flow"), "--results", str(measured / "mask")],
    ]


def _resumed(run: Path) -> list[str]:
    return ["--resume"] if any((run / state).exists() for state in ("state.pt", "state")) else []


def follow(recipe: Recipe, out: Path, run: Callable[[list[str]], None]) -> None:
    """Run one command after the other; an alignment or a policy that is done is left alone."""
    done = {"align": out / "align" / "model", "train-policy": out / "policy" / "done"}
    for number in range(6):
        words = commands(recipe, out)[number]
        ready = done.get(words[0])
        if ready is not None and ready.exists():
            continue
        print("$ xpredflow", shlex.join(words), flush=True)
        run(words)
        if words[0] == "train-policy":
            done["train-policy"].touch()


def _run(words: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "xpredflow", *words], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in RECIPES:
        sys.exit(f"usage: python recipes/align_published.py {'|'.join(RECIPES)}")
    follow(RECIPES[sys.argv[1]], RUNS / sys.argv[1], _run)
