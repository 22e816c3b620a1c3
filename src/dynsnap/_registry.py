"""Things by name, to which code can add. Files only look names up.

`Displayed` is the other way in which a room below reaches one above without knowing it: results
ask the renderer for pages and pictures, and `dynsnap.report` states that it is the renderer.
"""

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from dynsnap.errors import PlanError, did_you_mean

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping that is read only, but for `add`.

    Args:
        what: What the things are, for messages.
        own: Those that come with dynsnap, which nothing replaces.

    Example:
        >>> colours = Registry("colour", {"red": 1})
        >>> colours.add("blue", 2)
        >>> list(colours), colours.find("blue")
        (['red', 'blue'], 2)
        >>> colours.find("bleu")
        Traceback (most recent call last):
            ...
        dynsnap.errors.PlanError: There is no colour 'bleu'. Did you mean "blue"?
    """

    def __init__(self, what: str, own: Mapping[str, T]) -> None:
        self._what = what
        self.own = frozenset(own)
        self._things = dict(own)

    def __getitem__(self, name: str) -> T:
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)

    def __len__(self) -> int:
        return len(self._things)

    def add(self, name: str, thing: T) -> None:
        """Make a thing known in this process; one of the same name is replaced, not dynsnap's."""
        fits = isinstance(name, str) and name and all(c.isalnum() or c in "-_." for c in name)
        if not fits:
            raise PlanError(
                f"The name of a {self._what} must be made of letters, digits, '-', '_' and '.', "
                f"got {name!r}."
            )
        if name in self.own:
            raise PlanError(f"The {self._what} {name!r} is part of dynsnap. Choose another name.")
        self._things[name] = thing

    def find(self, name: str) -> T:
        """The thing of this name; PlanError names the nearest where there is none."""
        if name not in self._things:
            hint = did_you_mean(str(name), self._things)
            raise PlanError(f"There is no {self._what} {name!r}. {hint}")
        return self._things[name]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Forget on leaving what was added within: for tests."""
        before = dict(self._things)
        try:
            yield
        finally:
            self._things = before


class Renderer(Protocol):
    """Shows results to people."""

    def fragment(self, result: Any) -> str:
        """The most important of a result, as HTML within a notebook."""
        ...

    def write_page(self, result: Any, path: Path) -> None:
        """Write the page of a result."""
        ...

    def picture(self, result: Any, name: str | None) -> Any:
        """A figure of a result."""
        ...


_RENDERER = "dynsnap.report"  # which sets itself when it is loaded; the first picture loads it
_renderers: list[Renderer] = []


def set_renderer(renderer: Renderer) -> None:
    """Say what shows results from now on."""
    _renderers[:] = [renderer]


def _renderer() -> Renderer:
    if not _renderers:
        importlib.import_module(_RENDERER)
    return _renderers[0]


class Displayed:
    """A result that notebooks show, and that has pages and pictures."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _renderer().fragment(self)

    def to_html(self, path: str | Path) -> Path:
        """Write everything as one self-contained page, and return its path."""
        target = Path(path)
        _renderer().write_page(self, target)
        return target

    def plot(self, name: str | None = None) -> Any:
        """A figure: a notebook shows it, and `save("flow.svg")` writes it as SVG or PNG.

        Args:
            name: Which; by default the most important. A wrong name lists all.
        """
        return _renderer().picture(self, name)
