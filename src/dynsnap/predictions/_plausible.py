"""Whether the values of a column can be class names at all.

Scores, regressions, ids and free text can be compared as if they were classes, and then nearly
nothing is ever the same, or right, or lost. So they are refused before anything is counted.
"""

import re
from collections.abc import Collection

from dynsnap.errors import InputError
from dynsnap.predictions._text import listed, natural_order, shown

FEW = 50  # so many values may be classes whatever they look like: of ratings, there are 0.5 to 5
_NEARLY_ALL = 0.9  # different values for each row: ids, or free text
_MANY = 0.5
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def doubts(column: str, names: Collection[str], *, rows: int) -> list[str]:
    """What a reader should know about class names that nothing but this column names.

    Class names that the file declares, by columns of scores or in its metadata, are not looked at.

    Args:
        column: The column.
        names: Its distinct values, without declared class names.
        rows: How many rows it has.

    Raises:
        InputError: They are not class names: more than 50 numbers that are not whole, or nearly
            as many values as rows.

    Example:
        >>> doubts("label", ["0.5", "1"], rows=9)
        ['The column "label" holds numbers that are not whole, taken for class names: "0.5".']
    """
    broken = natural_order(name for name in names if _is_broken(name))
    if len(broken) > FEW:
        raise InputError(
            f"The column {shown(column)} must hold class names, but has {len(names):,} different "
            f"values in {rows:,} rows, {len(broken):,} of them numbers that are not whole, such as "
            f"{listed(broken, most=2)}. Are they scores, or a regression? {_advice(column)}"
        )
    if len(names) > FEW and len(names) > _NEARLY_ALL * rows:
        raise InputError(
            f"The column {shown(column)} must hold class names, but has {len(names):,} different "
            f"values in {rows:,} rows, such as {listed(natural_order(names), most=2)}. Are they "
            f"ids, or free text? {_advice(column)}"
        )
    found = []
    if broken:
        found.append(
            f"The column {shown(column)} holds numbers that are not whole, taken for class names: "
            f"{listed(broken)}."
        )
    if len(names) > FEW and len(names) > _MANY * rows:
        found.append(
            f"The column {shown(column)} has {len(names):,} different values in {rows:,} rows: are "
            "they class names?"
        )
    return found


def _advice(column: str) -> str:
    return (
        "Name the column of class names with --label-column and --truth-column; if these are "
        f"class names, declare them: scores, or the metadata `dynsnap.classes` beside "
        f"{shown(column)}."
    )


def _is_broken(name: str) -> bool:
    return bool(_NUMBER.fullmatch(name)) and not float(name).is_integer()
