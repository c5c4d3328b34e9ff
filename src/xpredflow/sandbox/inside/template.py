"""A process that renders chat templates, one after the other, with little memory and time.

Started by path with the folders of jinja2 as arguments; requests and replies are JSON lines. The
variables are plain JSON, and Jinja's sandbox keeps a template from everything but their values.
"""

import json
import os
import sys
from functools import lru_cache
from typing import Any

MEMORY = 512 * 2**20  # bytes of address space
SECONDS = 2  # of the processor for one conversation; published templates take milliseconds
MOST_CHARACTERS = 20_000_000
LONGEST_REASON = 300


def main(folders: list[str]) -> None:
    """Read requests until there are no more."""
    sys.path += folders
    import jinja2.ext
    import jinja2.sandbox  # noqa: F401  before the memory is bounded

    _limit_process()
    for line in sys.stdin.buffer:
        _limit_seconds()
        try:
            reply: dict[str, Any] = {"text": _rendered(**json.loads(line))}
        except MemoryError:
            reply = {"error": f"needs more than {MEMORY >> 20} MiB of memory"}
        except Exception as error:
            reason = "".join(c if c.isprintable() else " " for c in str(error)[:LONGEST_REASON])
            reply = {"error": f"{type(error).__name__}: {reason}", "line": _line_of(error)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def _limit_process() -> None:
    if sys.platform == "win32":
        return  # the host's clock is the only bound there
    import resource

    for kind, amount in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (amount, amount))


def _limit_seconds() -> None:
    """So many from now on; the system ends the process that takes more."""
    if sys.platform != "win32":
        import resource

        used, (_, most) = os.times(), resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.user + used.system) + SECONDS + 1, most))


def _rendered(template: str, variables: dict[str, Any]) -> str:
    pieces, room = [], MOST_CHARACTERS
    for piece in _compiled(template).generate(**variables):
        room -= len(piece)
        if room < 0:
            raise ValueError(f"writes more than {MOST_CHARACTERS} characters")
        pieces.append(piece)
    return "".join(pieces)


@lru_cache(8)
def _compiled(template: str) -> Any:
    return _environment().from_string(template)


@lru_cache(1)
def _environment() -> Any:
    """What the templates of published checkpoints expect to find, as transformers gives it."""
    from datetime import datetime

    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """{% generation %}: marks what is trained on; nothing of it shows in the text."""

        tags = frozenset({"generation"})  # type: ignore[assignment]

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            inside = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(inside, lineno=line)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    def to_json(value: Any, ensure_ascii: bool = False, **style: Any) -> str:
        allowed = {k: v for k, v in style.items() if k in ("indent", "separators", "sort_keys")}
        return json.dumps(value, ensure_ascii=ensure_ascii, **allowed)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _line_of(error: Exception) -> int | None:
    """The line of the template at which an error arose: the innermost one that is known."""
    found = getattr(error, "lineno", None)
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in ("<template>", "<unknown>"):
            found = step.tb_lineno
        step = step.tb_next
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
