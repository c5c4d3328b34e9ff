"""Documented commands with less to do: the same flags, a few problems and updates."""

# Replaced or added, so that a command takes seconds: flag, its other name, value; a flag with a
# question mark is replaced only.
CHEAP: dict[str, list[tuple[str, str, str]]] = {
    "demo": [("--more", "", "1"), ("--delay", "", "0")],
    "eval": [("--limit", "", "1"), ("--samples?", "", "2")],
    "compare": [("--limit", "", "1"), ("--budget", "-b", "1/8"), ("--draws?", "", "2")],
    "lm-eval": [("--limit", "", "1")],
    "self-generate": [("--limit", "", "2")],
    "align": [("--updates", "-n", "1")],
    "train-softmask": [("--updates", "-n", "1")],
    "train-policy": [("--updates", "-n", "1")],
    "pretrain": [("--updates", "-n", "2")],
}
CHEAP_OPTIONS = {
    "self-generate": {"budget": "4"},
    "align": {"batch": "2", "holdout": "2"},
    "train-softmask": {"batch": "2", "holdout": "2"},
    "train-policy": {
        "screened": "2",
        "prompts": "2",
        "group": "2",
        "budget": "4",
        "validate_every": "0",
        "init_fits": "5",
        "init_prompts": "2",
    },
    "pretrain": {"batch": "4", "probe_every": "0", "tokenizer_examples": "500"},
}


def cheaply(words: list[str]) -> list[str]:
    """The same command with less to do."""
    command, words = words[0], list(words)
    changes = [(flag, other, [flag, value]) for flag, other, value in CHEAP.get(command, [])]
    for name, value in CHEAP_OPTIONS.get(command, {}).items():
        changes.append((f"--{name.replace('_', '-')}", f"{name}=", ["-o", f"{name}={value}"]))
    if "--choose" in words:
        changes.append(("--choose-limit", "", ["--choose-limit", "1"]))
    for flag, other, (name, value) in changes:
        if not flag.endswith("?") or flag[:-1] in words:
            words = [*_without(words, flag.rstrip("?"), other), name.rstrip("?"), value]
    return words


def _without(words: list[str], flag: str, other: str) -> list[str]:
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in (flag, other):
            next(rest)
        elif other.endswith("=") and word.startswith(other):
            kept.pop()  # its -o
        else:
            kept.append(word)
    return kept
