"""Hostile programs in every sandbox of this machine: none passes, and the next honest one does."""

import secrets

import attacks  # type: ignore[import-not-found]

from battery.outcome import Tally, Wrong
from xpredflow.sandbox import Sandbox

# These do as they are told and show by what they return that they could do no harm.
HARMLESS = {"HONEST"}
PROGRAMS = {
    name: value
    for name, value in vars(attacks).items()
    if name.isupper() and isinstance(value, str) and name not in HARMLESS
}


def try_programs(isolations: tuple[str, ...] = ("bubblewrap", "landlock")) -> Tally:
    """Each of the attacks against a secret that only a forged verdict could know."""
    tally = Tally("programs")
    for isolation in isolations:
        with Sandbox(workers=1, isolation=isolation) as box:
            for name, program in PROGRAMS.items():
                tally.run(f"{isolation} {name}", lambda b=box, p=program: _attack(b, p))
    return tally


def _attack(box: Sandbox, program: str) -> None:
    secret = secrets.token_hex(8)
    verdict = box.run(program, [[[3], secret]], entry_point="f", timeout=1.0)
    if verdict.passed:
        raise Wrong("a verdict was forged")
    if not verdict.reason.isprintable() or secret in verdict.reason.partition("expected")[0]:
        raise Wrong(f"the reason is {verdict.reason!r}")
    if not box.run(attacks.HONEST, [[[1], 2]], entry_point="f").passed:
        raise Wrong("an honest program does not pass any more")
