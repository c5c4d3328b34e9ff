"""One kind of table for everything that has a name: decoders, policies, families, tasks, tables.

What the package brings registers itself where it is defined. Others add to it from Python,

    from xpredflow import register
    register("decoder", "mine", MyDecoder)

or by an entry point of their own package, which is loaded when its name is first needed:

    [project.entry-points."xpredflow.decoders"]
    mine = "my_package:MyDecoder"
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from xpredflow.errors import InputError, unknown_name

T = TypeVar("T")


@dataclass(frozen=True)
class Entry(Generic[T]):
    """What stands behind a name, a line about it, and whatever else its kind wants to know."""

    item: T
    summary: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)


class Registry(Generic[T]):
    """Names of one kind, in the order in which they were registered; plug-ins come last."""

    def __init__(self, kind: str, group: str | None = None) -> None:
        self.kind, self.group = kind, group
        self._entries: dict[str, Entry[T]] = {}
        self._plugins: dict[str, EntryPoint] | None = None

    def register(self, name: str, *, summary: str = "", **about: Any) -> Callable[[T], T]:
        """A decorator that gives its object this name."""

        def add(item: T) -> T:
            if name in self._entries and not _same(self._entries[name].item, item):
                raise InputError(
                    f"{self.kind} {name!r} is registered already, as"
                    f" {self._entries[name].item!r}: choose another name"
                )
            self._entries[name] = Entry(item, _first_line(summary or item.__doc__), about)
            return item

        return add

    def entry(self, name: str) -> Entry[T]:
        """What was registered under a name; an unknown one is an error with the nearest."""
        if name not in self._entries:
            self._load(name)
        if name not in self._entries:
            raise unknown_name(self.kind, name, self)
        return self._entries[name]

    def __getitem__(self, name: str) -> T:
        return self.entry(name).item

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._found()

    def __iter__(self) -> Iterator[str]:
        yield from self._entries
        yield from (name for name in self._found() if name not in self._entries)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def remove(self, name: str) -> None:
        """Forget what was registered under a name, so that something else may take it."""
        self.entry(name)
        del self._entries[name]

    def loaded(self) -> dict[str, Entry[T]]:
        """What is registered by now, by name; no plug-in is loaded for it."""
        return dict(self._entries)

    def name_of(self, item: Any) -> str | None:
        """The name under which an object is registered by now, if it is."""
        return next((name for name, entry in self._entries.items() if entry.item is item), None)

    def entries(self) -> dict[str, Entry[T]]:
        """Everything by name, plug-ins loaded; one that cannot be loaded is left out, aloud."""
        for name in list(self):
            if name not in self._entries:
                try:
                    self._load(name)
                except InputError as error:
                    warnings.warn(str(error), stacklevel=2)
        return dict(self._entries)

    def _found(self) -> dict[str, EntryPoint]:
        """The entry points of other packages, looked up once."""
        if self._plugins is None:
            found = entry_points(group=self.group) if self.group else ()
            self._plugins = {point.name: point for point in found}
        return self._plugins

    def _load(self, name: str) -> None:
        point = self._found().get(name)
        if point is None:
            return
        try:
            item = point.load()
        except Exception as error:  # another package's code may raise anything
            raise InputError(
                f"{self.kind} {name!r} of the plug-in {point.value!r} cannot be loaded"
                f" ({type(error).__name__}: {error}): update or uninstall that package"
            ) from error
        if name not in self._entries:  # loading it may have registered it
            self.register(name)(item)


def _same(old: Any, new: Any) -> bool:
    """The same object, or the same definition run again, as in a notebook."""
    where = (getattr(new, "__module__", None), getattr(new, "__qualname__", None))
    known = (getattr(old, "__module__", None), getattr(old, "__qualname__", None))
    return old is new or (None not in where and where == known)


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0]


DECODERS: Registry[Any] = Registry("decoder", "xpredflow.decoders")
POLICIES: Registry[Any] = Registry("policy", "xpredflow.policies")
FAMILIES: Registry[Any] = Registry("architecture", "xpredflow.models")
TASKS: Registry[Any] = Registry("task", "xpredflow.tasks")
TABLES: Registry[Any] = Registry("table")
REGISTRIES = {
    "decoder": DECODERS,
    "policy": POLICIES,
    "model": FAMILIES,
    "task": TASKS,
    "table": TABLES,
}


def register(kind: str, name: str, item: Any, *, summary: str = "", **about: Any) -> None:
    """Give a decoder, policy, model family, task or table of yours a name.

    register("decoder", "greedy", Greedy, summary="commits one position per pass")
    register("policy", "half", Half)
    register("model", "MyModelLM", MyFamily)      # by config.json's `architectures`
    register("task", "riddles", Riddles)
    """
    if kind not in REGISTRIES:
        raise unknown_name("kind of thing to register", kind, REGISTRIES)
    REGISTRIES[kind].register(name, summary=summary, **about)(item)
