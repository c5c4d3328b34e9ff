"""The command line that starts a worker, for each way of shutting it in."""

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from xpredflow.sandbox import python_files

ISOLATIONS = ("bubblewrap", "landlock", "none")
# Root becomes this user inside: an ordinary one that owns no file and no process. (Root itself
# would be exempt from the limit on processes.)
UNUSED_UID = 1_977_181_204
BOX = "/box"
PACKAGES = ("site-packages", "dist-packages")
BOX_BYTES = 16 * 2**20
_INSIDE = str(Path(__file__).parent / "inside")
_INSIDE_THERE = "/sandbox/inside"


class Unavailable(Exception):
    """This machine cannot isolate in this way; the message says why."""


def command(isolation: str, resources: ExitStack) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of a worker; what it needs on disk is tidied up by `resources`."""
    if not sys.platform.startswith("linux"):
        raise Unavailable(f"needs Linux, this is {sys.platform}")
    files = python_files.find()
    environment = {
        "LD_LIBRARY_PATH": ":".join(files.library_folders),
        "PYTHONHASHSEED": "0",  # the order of a set of words must not change a verdict
        "LANG": "C.UTF-8",
    }
    if isolation == "bubblewrap":
        python = _python(_INSIDE_THERE, isolation, BOX)
        return [*_bubblewrap(files, environment), *python], environment
    if isolation == "landlock":
        # No place to write at all: Landlock has no limit on how much, and no end that wipes it.
        # Installed packages stay closed: with ours, a program could make the hidden tests anew.
        readable = [*_own_files(files.standard_library), *files.libraries]
        return _python(_INSIDE, isolation, files.standard_library, *readable), environment
    box = resources.enter_context(tempfile.TemporaryDirectory(prefix="xpredflow-"))
    return _python(_INSIDE, isolation, box), environment


def _own_files(library: str) -> list[str]:
    """What lies in a standard library, without the packages that were installed into it."""
    names = sorted({*os.listdir(library)} - {*PACKAGES})
    return [os.path.join(library, name) for name in names]


def _python(inside: str, isolation: str, box: str, *readable: str) -> list[str]:
    boot = (
        "import sys; sys.path.insert(0, sys.argv[1]); from inside.warm import main; "
        "del sys.path[0]; main(*sys.argv[2:])"
    )
    uid = UNUSED_UID if os.getuid() == 0 else os.getuid()
    flags = ["-S", "-s", "-P", "-B", "-c", boot]
    arguments = [os.path.dirname(inside), isolation, str(uid), box, *readable]
    return [python_files.find().executable, *flags, *arguments]


def _bubblewrap(files: python_files.PythonFiles, environment: dict[str, str]) -> list[str]:
    program = shutil.which("bwrap")
    if not program:
        raise Unavailable("no bwrap on the PATH (Debian: apt-get install bubblewrap)")
    # Not --as-pid-1: without capabilities bwrap, as root, could not kill the user we become.
    words = [program, "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    if os.getuid() == 0:
        # No user namespace: it would map root alone, and there would be nobody to become.
        words += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        words += ["--unshare-user"]
    words += ["--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    # The parents of these paths are new directories, so a Python under /root, which the unused
    # user could not reach, is found at its own path. bwrap itself would make them for root only.
    shown = (files.executable, files.standard_library, *files.libraries)
    for parent in sorted({str(parent) for path in shown for parent in Path(path).parents}):
        words += ["--perms", "0755", "--dir", parent] if parent != "/" else []
    for path in shown:
        words += ["--ro-bind", path, path]
    for link, target in files.links:
        words += ["--symlink", target, link]
    if files.loader and files.loader not in files.libraries:
        words += ["--ro-bind", os.path.realpath(files.loader), files.loader]
    for packages in PACKAGES:
        hidden = os.path.join(files.standard_library, packages)
        if os.path.isdir(hidden):
            words += ["--tmpfs", hidden, "--remount-ro", hidden]
    words += ["--ro-bind", _INSIDE, _INSIDE_THERE, "--dev-bind", "/dev/null", "/dev/null"]
    words += ["--size", str(BOX_BYTES), "--tmpfs", BOX, "--remount-ro", "/", "--chdir", BOX]
    return [*words, "--"]
