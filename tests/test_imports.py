"""The direction of imports (docs/decisions.md): a room knows only the rooms below it."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "xpredflow"

# From the ground up; rooms on one line may not know each other. A name with a dot is a module that
# stands lower than the rest of its room.
LEVELS = [
    ["errors"],
    ["figures", "files", "processes", "settings", "registry", "tasks.base"],  # the ground
    ["jsonl"],
    ["engine.distribution"],
    ["types"],
    ["engine.signals", "engine.randomness", "sandbox"],
    ["policies", "models"],
    ["flow"],
    ["flow_extensions"],
    ["decoders"],
    ["engine"],
    ["tasks"],
    ["watch", "evaluation"],
    ["training"],
    ["experiments", "harness", "slots"],
    ["serve"],
    ["cli"],
]
# flow.py mirrors the paper and must not depend on how anything else is built.
ONLY = {
    "flow": {"types", "engine.signals", "settings"},
    "engine.distribution": set(),
    "tasks": {"errors", "files", "jsonl", "settings", "registry", "tasks", "tasks.base"},
    "engine.signals": {"types", "engine.distribution"},
    "models": {"types", "errors", "files", "models", "processes", "registry", "settings"},
}
LOW = [name for names in LEVELS for name in names if "." in name]


def _room(path: Path) -> str:
    return _room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))


def _room_of(module: str) -> str:
    """The room of a module below xpredflow."""
    return next((name for name in LOW if module == name), module.split(".")[0])


def _imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xpredflow."):
            rooms.add(_room_of((node.module or "").removeprefix("xpredflow.")))
        if isinstance(node, ast.Import):
            rooms |= {
                _room_of(n.name.removeprefix("xpredflow."))
                for n in node.names
                if n.name.startswith("xpredflow.")
            }
    return rooms


def test_rooms_import_downward_only() -> None:
    level = {room: i for i, rooms in enumerate(LEVELS) for room in rooms}
    for path in ROOT.rglob("*.py"):
        room = _room(path)
        if room in ("__init__", "__main__"):
            continue
        assert room in level, f"{path.name}: give the new room {room!r} a level in this test"
        for used in _imported_rooms(path) - {room}:
            assert used in level, f"{path.name} imports the unknown room {used!r}"
            assert level[used] < level[room], (
                f"{path.relative_to(ROOT)} ({room}) may not import {used}"
            )
        if room in ONLY:
            assert _imported_rooms(path) <= ONLY[room], f"{path.name}: only {ONLY[room]} allowed"


def test_shapes_are_checked_wherever_they_are_stated(pytestconfig) -> None:
    checked = pytestconfig.getoption("--jaxtyping-packages").split(",")
    for path in ROOT.rglob("*.py"):
        if "from jaxtyping import" in path.read_text():
            room = path.relative_to(ROOT).parts[0].removesuffix(".py")
            assert f"xpredflow.{room}" in checked, f"add {room} in pyproject.toml"


def test_importing_the_package_does_not_import_torch() -> None:
    code = "import sys, xpredflow, xpredflow.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
