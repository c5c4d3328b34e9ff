"""A task from a Python file of the user's: mine.py:MyTask."""

import importlib.util
import inspect
import sys
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

from xpredflow.errors import InputError, unknown_name
from xpredflow.tasks.base import SimpleTask, Task


def is_python_task(name: str) -> bool:
    """Whether a task is given as mine.py:MyTask, or as mine.py with a single class in it."""
    return name.endswith(".py") or ".py:" in name


def load_task(name: str) -> Task:
    """The task that a class of the file makes without arguments. The file's code is run."""
    file, _, wanted = name.rpartition(":") if ".py:" in name else (name, "", "")
    path = Path(file).expanduser()
    if not path.is_file():
        raise InputError(f"task {name!r}: no file {str(path)!r}; write FILE.py:CLASS")
    module = _import(path)
    classes = _task_classes(module)
    if not wanted and len(classes) == 1:
        wanted = next(iter(classes))
    if not wanted:
        raise InputError(
            f"task {name!r} names no class: write {file}:CLASS"
            + (f", one of {', '.join(classes)}" if classes else "")
        )
    if not hasattr(module, wanted):
        raise unknown_name("task", wanted, classes, f" in {file}")
    task = build(getattr(module, wanted), name)
    if isinstance(task, SimpleTask):
        task.digest = blake2b(path.read_bytes(), digest_size=8).hexdigest()
    return task


def build(item: Any, name: str) -> Task:
    """The task behind a class, a function that makes one, or a task itself."""
    if inspect.isabstract(item):
        lacking = ", ".join(sorted(item.__abstractmethods__))
        raise InputError(f"task {name!r} is not finished: its class lacks {lacking}")
    made = isinstance(item, Task) and not isinstance(item, type)
    task = item if made or not callable(item) else item()
    if not isinstance(task, Task):
        members = ("name", "response_length", "runs_programs", "problem", "score", "size")
        lacking = ", ".join(member for member in members if not hasattr(task, member))
        raise InputError(
            f"task {name!r} is no task, for it lacks {lacking or 'count_problems'}: derive it from"
            " xpredflow.tasks.SimpleTask, which needs problems() and grade() only"
        )
    return task


def _task_classes(module: ModuleType) -> list[str]:
    return [
        name
        for name, item in vars(module).items()
        if inspect.isclass(item)
        and item.__module__ == module.__name__
        and not inspect.isabstract(item)
        and (issubclass(item, SimpleTask) or hasattr(item, "score"))
    ]


def _import(path: Path) -> ModuleType:
    key = blake2b(str(path.resolve()).encode(), digest_size=4).hexdigest()
    name = f"xpredflow_task_file_{path.stem}_{key}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is no Python file: write FILE.py:CLASS")
    module = importlib.util.module_from_spec(spec)
    beside = str(path.resolve().parent)  # what a script may import, the file may too
    sys.modules[name] = module
    sys.path.insert(0, beside)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's code may raise anything
        sys.modules.pop(name, None)
        raise InputError(
            f"{path} cannot be imported ({type(error).__name__}: {error}): mend it first"
        ) from error
    finally:
        sys.path.remove(beside)
    return module
