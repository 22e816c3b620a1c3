"""Keys of study files that have another name by now: they are still read."""

from collections.abc import Mapping
from typing import Any

from dynsnap._renamed import now_called
from dynsnap.errors import PlanError

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
