"""pyproject.toml declares what src imports, and nothing else; the lock file pins all of it."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Used through another package, or under another name than the one it is imported by.
BEHIND = {
    "jinja2": "transformers renders chat templates with it",
    "tokenizers": "transformers' fast tokenizers are made of it",
}


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=~! ;]", requirement)[0].lower().replace("_", "-")


def _declared() -> set[str]:
    extras = [one for name, group in PROJECT["optional-dependencies"].items() for one in group]
    return {_name(one) for one in (*PROJECT["dependencies"], *extras)} - {"xpredflow"}


def _imported() -> set[str]:
    """Distributions that some file of the package imports, wherever in the file."""
    modules: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.split(".")[0] for alias in node.names}
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                modules.add(node.module.split(".")[0])
            modules |= _by_name(node)
    known = packages_distributions()
    third = modules - set(sys.stdlib_module_names) - {"xpredflow"}
    return {_name(known.get(module, [module])[0]) for module in third}


def _by_name(node: ast.AST) -> set[str]:
    """`import_module("peft")` and `find_spec("peft")`."""
    if not isinstance(node, ast.Call) or not node.args:
        return set()
    called = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    [first, *_] = node.args
    if called not in ("import_module", "find_spec") or not isinstance(first, ast.Constant):
        return set()
    return {str(first.value).split(".")[0]}


def test_every_dependency_is_used() -> None:
    assert _declared() - _imported() - set(BEHIND) == set()


def test_every_import_is_declared() -> None:
    assert _imported() - _declared() == set()


def test_the_lock_pins_every_dependency_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", line) for line in pins)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    needed = _declared() | {_name(one) for one in groups["dev"]} - {"xpredflow"}
    assert needed <= {_name(line) for line in pins}
    assert len({_name(line) for line in pins}) == len(pins)
