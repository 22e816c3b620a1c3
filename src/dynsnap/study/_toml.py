"""Tables of a TOML file, read key by key, so that unknown keys are found."""

from collections.abc import Iterable, Mapping
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


class TomlTable:
    """One table of a TOML file.

    Every key is taken once; `finish` then refuses the keys that are left and suggests known ones.

    Args:
        values: The keys and values of the table.
        where: The name of the table in messages.
        taken: Keys that were taken before.
    """

    def __init__(self, values: Mapping[str, Any], where: str, *, taken: Iterable[str] = ()) -> None:
        self._values = dict(values)
        self._known: list[str] = list(taken)
        self.where = where

    def take(self, key: str, kind: type[T], default: T = _REQUIRED) -> T:
        """The value of a key, which must be of this kind."""
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise PlanError(f"{self.where} must set `{key}`.")
            return default
        value = self._values.pop(key)
        if kind is float and type(value) is int:
            value = float(value)
        # To Python a bool is an int.
        if type(value) is not kind:
            raise PlanError(f"{self.where}: `{key}` must be {_WORDS[kind]}, got {value!r}.")
        return value

    def take_any(self, key: str, default: Any = None) -> Any:
        """The value of a key, of any kind: the caller checks it."""
        self._known.append(key)
        return self._values.pop(key, default)

    def take_texts(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """A list of texts."""
        found = self.take(key, list, list(default))
        if not all(isinstance(entry, str) for entry in found):
            raise PlanError(f"{self.where}: `{key}` must be a list of texts, got {found!r}.")
        return tuple(found)

    def table(self, key: str) -> "TomlTable":
        """A table within this one; empty where the file has none."""
        return TomlTable(self.take(key, dict, {}), f"{self.where[:-1]}.{key}]")

    def tables(self, key: str) -> tuple["TomlTable", ...]:
        """A list of tables, `[[key]]` in TOML."""
        found = self.take(key, list, [])
        if not all(isinstance(entry, dict) for entry in found):
            raise PlanError(f"`{key}` must be written as tables, [[{key}]].")
        return tuple(TomlTable(entry, f"[[{key}]] {i}") for i, entry in enumerate(found, 1))

    def rest(self) -> dict[str, Any]:
        """All keys that were not taken, for other code that knows them."""
        left, self._values = self._values, {}
        return left

    def finish(self) -> None:
        """Raise where a key was not taken."""
        for key in self._values:
            raise PlanError(
                f"{self.where} has no setting `{key}`. {did_you_mean(key, self._known)}"
            )
