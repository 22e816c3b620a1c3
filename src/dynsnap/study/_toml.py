"""Tables of a TOML file, read key by key: unknown keys are found, old names still work."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from dynsnap._renamed import now_called
from dynsnap.errors import PlanError, did_you_mean

GROWTH = {"untouched": "selection_holdout", "holdout": "test_size"}
_ROLLING = {
    "carry": "carry_over",
    "lag": "max_accuracy_gap",
    "refresh": "finetune_epochs",
    "onward": "warm_start",
}


def with_new_keys(found: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The tables of a study file with today's keys, and what each old key is called now.

    Tables that are not of the right kind are left for the reader to refuse.

    Example:
        >>> with_new_keys({"variant": [{"name": "half", "carry": 0.5}]})
        ({'variant': [{'name': 'half', 'carry_over': 0.5}]}, ['`carry` is now `carry_over`'])
    """
    made, said = dict(found), dict[str, None]()
    if isinstance(data := made.get("data"), dict):
        growth = _renamed(data.get("growth"), GROWTH, "[data.growth]", said)
        made["data"] = {**data, "growth": growth} if "growth" in data else data
    if isinstance(methods := made.get("methods"), dict):
        made["methods"] = {
            name: _renamed(table, _ROLLING, f"[methods.{name}]", said)
            for name, table in methods.items()
        }
    for kind in ("variant", "sweep"):
        if isinstance(tables := made.get(kind), list):
            made[kind] = [
                _renamed(table, _ROLLING, f"[[{kind}]] {i}", said)
                for i, table in enumerate(tables, 1)
            ]
    if isinstance(sweeps := made.get("sweep"), list):
        made["sweep"] = [_swept(table, said) for table in sweeps]
    return made, list(said)


def _renamed(table: Any, successors: Mapping[str, str], where: str, said: dict[str, None]) -> Any:
    """A table with today's keys, in the order of the file."""
    if not isinstance(table, dict):
        return table
    for old, new in successors.items():
        if old in table and new in table:
            raise PlanError(f"{where} sets `{old}` and `{new}`: {now_called(old, new)}. Keep one.")
    said |= {now_called(old, new): None for old, new in successors.items() if old in table}
    return {successors.get(key, key): value for key, value in table.items()}


def _swept(table: Any, said: dict[str, None]) -> Any:
    """A sweep over a setting by its name of today."""
    over = table.get("over") if isinstance(table, dict) else None
    if not isinstance(over, str) or over not in _ROLLING:
        return table
    said[now_called(over, _ROLLING[over])] = None
    return {**table, "over": _ROLLING[over]}


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
