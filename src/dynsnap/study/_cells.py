"""Cells of the tables of a study, as CSV: read with care, and written for spreadsheets, too."""

import csv
import math
import re
from pathlib import Path

from dynsnap._untrusted import regular
from dynsnap.ensemble import COMBINATIONS
from dynsnap.errors import FileError, one_line

_MOST = 1 << 26  # bytes of a table
# What a spreadsheet takes for a formula where a cell starts with it; and such a cell, made safe.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")
# Shares of the test inputs, which are defined wherever there are any.
_SHARE = re.compile(
    r"(late_)?accuracy(_\d+)?|(correct_)?consistency|(kept|gained|lost|never)(_\d+_\d+)?"
)
_LONG_NUMBER = re.compile(r"\d{7}")  # of a generation, or of k in a top-k metric
_MOST_COST = 1e9  # trainings; and seconds of one are far fewer than the next
_MOST_SECONDS = 1e15
_SLACK = 1e-6  # sums of weights end up on either side of one


def safe(cell: object) -> object:
    """A cell that no spreadsheet runs: a text that looks like a formula gets a ' in front.

    Example:
        >>> safe("=A1"), safe("'=A1"), safe(-0.5), safe("-0.5"), safe("cyclic")
        ("'=A1", "''=A1", -0.5, '-0.5', 'cyclic')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def plain(cell: str) -> str:
    """The text that `safe` has made a cell of.

    Example:
        >>> plain("'=A1"), plain("-0.5"), plain("'quoted'")
        ('=A1', '-0.5', "'quoted'")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def read_cells(path: Path) -> list[dict[str, str]]:
    """The rows of a table by the names of its columns.

    Raises:
        FileError: There is no such file, or it is not a table.
    """
    rows = _read_rows(path)
    head = rows[0] if rows else []
    if len(set(head)) < len(head):
        raise damaged(path, "two of its columns have the same name")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(head):
            raise damaged(path, f"row {number} has {len(row)} cells for {len(head)} columns")
    return [dict(zip(head, map(plain, row), strict=True)) for row in rows[1:]]


def check_shareable(path: Path) -> None:
    """Raise where a table has a cell that a spreadsheet would run or a terminal obey.

    A study writes none, but a table from elsewhere may have some, and publishing it hands
    it on.
    """
    for number, row in enumerate(_read_rows(path), 1):
        for cell in row:
            if safe(plain(cell)) != cell or one_line(cell) != cell:
                raise damaged(path, f"row {number} has the cell {cell[:60]!r}")


def _read_rows(path: Path) -> list[list[str]]:
    try:
        if regular(path).stat().st_size > _MOST:
            raise FileError(f"{path} is larger than {_MOST >> 20} MB, which no study's table is.")
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.reader(file))
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (csv.Error, ValueError) as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, reason: str) -> FileError:
    """The error that states what is wrong with a table."""
    return FileError(f"{path} is damaged ({one_line(reason)[:200]}). Run the study again.")


def number(cells: dict[str, str], name: str) -> float | None:
    """A number of a row, None where the cell is empty or not there.

    Raises:
        ValueError: It is no number, or none that a study could have measured.
    """
    text = cells.get(name, "")
    if not text:
        return None
    value = float(text)
    low, high = -math.inf, math.inf
    if name in ("value", "low", "high") and _SHARE.fullmatch(cells["metric"]):
        low, high = 0.0, 1.0
    elif name == "cost" or cells["metric"] == "retrain_cost":
        low, high = 0.0, _MOST_COST
    elif name in ("seconds", "spread") or cells["metric"] == "seconds":
        low, high = 0.0, _MOST_SECONDS
    else:
        return value  # a ratio, which may be infinite, or undefined
    if not low - _SLACK <= value <= high + _SLACK:
        raise ValueError(f"{name} of {cells['metric']} is {text}, not from {low:g} to {high:g}")
    return value


def needed(cells: dict[str, str], name: str) -> float:
    """A number that a row must have."""
    value = number(cells, name)
    if value is None:
        raise ValueError(f"{name} of {cells['metric']} is missing")
    return value


def words(cells: dict[str, str]) -> tuple[str, str, str]:
    """What a row is about: a method, a combination and a metric."""
    method, combination, metric = (cells[name] for name in ("method", "combination", "metric"))
    sound = method and metric and not _LONG_NUMBER.search(metric)
    if not sound or combination not in COMBINATIONS:
        raise ValueError(f"a row is about {method!r}, {combination!r}, {metric!r}")
    return method, combination, metric
