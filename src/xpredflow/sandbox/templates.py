"""Chat templates come with a checkpoint: a process of their own renders them, within bounds."""

import atexit
import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from xpredflow.errors import InputError
from xpredflow.sandbox.inside.template import MOST_CHARACTERS, SECONDS

WALL_SECONDS = 120.0  # the net below the limit on computing, on a machine that is very busy
_OUT_OF_TIME = (-24, -9)  # SIGXCPU, SIGKILL; by number, because not every system has them
# a character takes at most twelve bytes in a line of JSON
_LONGEST_REPLY = 12 * MOST_CHARACTERS + 10_000
_PROGRAM = str(Path(__file__).parent / "inside" / "template.py")


def render_template(template: str, variables: dict[str, Any], where: str) -> str:
    """The text that a template makes of plain values; `where` names its file in errors."""
    reply = _renderer().reply({"template": template, "variables": variables})
    if "text" in reply:
        return reply["text"]
    line = reply.get("line")
    at = f"{where}, line {line}" if line else where
    raise InputError(
        f"{at}: {reply['error']}: correct the chat template, or pass chat=False (--no-chat) to"
        " send the prompt as plain text"
    )


class _Renderer:
    """One process, started when the first template is rendered and kept for the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the template gives; only a process that has rendered nothing else reports errors.

        One that ran out of memory or of stack may be damaged (CPython then calls what is no
        object any more), so it ends with its first error, and what fails in a used process is
        asked of a new one.
        """
        with self._lock:
            used = self._process is not None
            reply = self._ask(request)
            if "text" not in reply and used and not reply.get("slow"):
                self._stop()
                reply = self._ask(request)
            if "text" not in reply:
                self._stop()
            return reply

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process = self._process or _start()
        assert process.stdin
        assert process.stdout
        alarm = threading.Timer(WALL_SECONDS, process.kill)
        alarm.start()
        try:
            process.stdin.write(json.dumps(request).encode("ascii") + b"\n")
            process.stdin.flush()
            reply = process.stdout.readline(_LONGEST_REPLY)
        except BrokenPipeError:
            reply = b""
        except BaseException:  # Ctrl-C: its reply must not be taken for the next one's
            self._stop()
            raise
        finally:
            alarm.cancel()
        if reply.endswith(b"\n"):
            return json.loads(reply)
        # ended by the system or by the alarm: a new process would take as long
        slow = not reply and process.wait() in _OUT_OF_TIME
        return {"error": f"takes more than {SECONDS} s, or ended its process", "slow": slow}

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def _start() -> subprocess.Popen[bytes]:
    found = (importlib.util.find_spec(name) for name in ("jinja2", "markupsafe"))
    folders = {str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _PROGRAM, *sorted(folders)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the program, which ends this one at its exit
    )


_renderers: dict[int, _Renderer] = {}


def _renderer() -> _Renderer:
    """This process's own: one that was inherited by a fork answers its parent."""
    pid = os.getpid()
    if pid not in _renderers:
        _renderers.clear()
        _renderers[pid] = _Renderer()
        atexit.register(_renderers[pid].close)
    return _renderers[pid]
