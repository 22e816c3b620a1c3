"""Tables of a TOML file, read key by key, so that a key nobody asked for is found."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dynsnap.errors import PlanError, did_you_mean

T = TypeVar("T")

_REQUIRED: Any = object()
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


class Section:
    """One table of a study file.

    Every key is taken once; `finish` then refuses what is left over and says what was meant.
    """

    def __init__(self, values: Mapping[str, Any], where: str, *, taken: Iterable[str] = ()) -> None:
        self._values = dict(values)
        self._known: list[str] = list(taken)  # keys that others have taken before
        self.where = where

    def take(self, key: str, kind: type[T], default: T = _REQUIRED) -> T:
        """The value under a key, of the kind that it must have."""
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise PlanError(f"{self.where} must say `{key}`.")
            return default
        value = self._values.pop(key)
        if kind is float and type(value) is int:
            value = float(value)
        # A bool is an int to Python, and never to a person.
        if type(value) is not kind:
            raise PlanError(f"{self.where}: `{key}` must be {_WORDS[kind]}, got {value!r}.")
        return value

    def take_any(self, key: str, default: Any = None) -> Any:
        """The value under a key, whatever it is: whoever uses it checks it."""
        self._known.append(key)
        return self._values.pop(key, default)

    def take_texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of texts."""
        found = self.take(key, list, list(default))
        if not all(isinstance(entry, str) for entry in found):
            raise PlanError(f"{self.where}: `{key}` must be a list of texts, got {found!r}.")
        return tuple(found)

    def table(self, key: str) -> "Section":
        """A table within this one; empty where the file has none."""
        return Section(self.take(key, dict, {}), f"{self.where[:-1]}.{key}]")

    def tables(self, key: str) -> tuple["Section", ...]:
        """A list of tables, `[[key]]` in TOML."""
        found = self.take(key, list, [])
        if not all(isinstance(entry, dict) for entry in found):
            raise PlanError(f"`{key}` must be written as tables, [[{key}]].")
        return tuple(Section(entry, f"[[{key}]] {i}") for i, entry in enumerate(found, 1))

    def rest(self) -> dict[str, Any]:
        """All keys that were not taken, for somebody else who knows them."""
        left, self._values = self._values, {}
        return left

    def finish(self) -> None:
        """Raise where a key is left that nobody takes."""
        for key in self._values:
            raise PlanError(
                f"{self.where} has no setting `{key}`. {did_you_mean(key, self._known)}"
            )


def resolve(path: str, folder: Path) -> Path:
    """A path in a study file: relative to that file, `~` for the home folder."""
    return folder / Path(path).expanduser()


def repeated(names: list[str]) -> str | None:
    """The first name that is there more than once."""
    return next((name for name in names if names.count(name) > 1), None)
