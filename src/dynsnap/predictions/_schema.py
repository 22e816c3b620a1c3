"""Which column of a file is what."""

import json
from collections import Counter
from dataclasses import dataclass, fields

import pyarrow as pa

from dynsnap.errors import InputError, PlanError
from dynsnap.predictions._declared import check_columns
from dynsnap.predictions._keys import FORM
from dynsnap.predictions._kinds import is_list, is_number, is_plain
from dynsnap.predictions._text import check_class_names, listed, shown

_INDEX = "__index_level_"
CLASSES_KEY = b"dynsnap.classes"  # in the metadata of a schema: the class names, as a JSON list
PUBLISHED_KEY = b"dynsnap.published"  # what is inside the labels of a published study


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """What the columns of a file are called, where they are not called as dynsnap calls them.

    Attributes:
        id: Ids, whole numbers or text.
        truth: True classes, by name.
        label: Predicted classes, by name.
        score_prefix: What the name of a score column starts with; the class name follows.
        scores: One list of scores per input, its classes in the file's metadata.
        weight: The importance or traffic of an input.

    Example:
        >>> ColumnNames(id="image", label="predicted").label
        'predicted'
    """

    id: str = "id"
    truth: str = "truth"
    label: str = "label"
    score_prefix: str = "score:"
    scores: str = "scores"
    weight: str = "weight"

    def __post_init__(self) -> None:
        names = [getattr(self, field.name) for field in fields(self)]
        if not all(isinstance(name, str) and name for name in names):
            raise PlanError(f"Every column needs a name, but the names are {names}.")
        if len(set(names)) < len(names):
            raise PlanError(f"Every column needs a name of its own, but the names are {names}.")

    @property
    def renamed(self) -> tuple[str, ...]:
        """The roles that were given another name, and so must be in the file."""
        plain = {field.name: field.default for field in fields(self)}
        return tuple(role for role, name in plain.items() if getattr(self, role) != name)

    @property
    def reserved(self) -> frozenset[str]:
        """The names that a slice cannot have."""
        return frozenset({self.id, self.truth, self.label, self.scores, self.weight})


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLayout:
    """Which column of one file is what, by name; None or empty for what it does not have.

    Attributes:
        score_columns: One column per class.
        score_list: One column that holds a list of scores per input.
        classes: The class names as far as the schema tells them, in the order of the scores.
        others: Columns that may be slices.
        unusable: Columns that cannot be, because of their type or because they share a name.
    """

    id: str
    truth: str | None
    label: str | None
    weight: str | None
    score_columns: tuple[str, ...]
    score_list: str | None
    classes: tuple[str, ...] | None
    others: tuple[str, ...]
    unusable: tuple[str, ...]

    @property
    def has_scores(self) -> bool:
        """Whether the file holds scores, in whichever form."""
        return bool(self.score_columns) or self.score_list is not None

    @property
    def essential(self) -> tuple[str, ...]:
        """Every column but the slices."""
        single = (self.id, self.truth, self.label, self.weight, self.score_list)
        return (*(name for name in single if name is not None), *self.score_columns)


def interpret(schema: pa.Schema, columns: ColumnNames) -> ColumnLayout:
    """Find out which column of a file is what.

    Example:
        >>> schema = pa.schema({"id": pa.int64(), "score:cat": pa.float32(), "hour": pa.int8()})
        >>> layout = interpret(schema, ColumnNames())
        >>> layout.classes, layout.others
        (('cat',), ('hour',))
    """
    names = schema.names
    check_columns(len(names))
    if PUBLISHED_KEY in (schema.metadata or {}):
        raise InputError(
            "It holds the predictions of many ensembles. Name one by its address, with the folder "
            f"of this file: {FORM}."
        )
    _check_presence(names, columns)
    prefix = columns.score_prefix
    score_columns = tuple(name for name in names if name.startswith(prefix) and name != prefix)
    score_list = columns.scores if _has_list(schema, columns) else None
    if score_columns and score_list:
        raise InputError(
            f"Scores are given twice, in the list column {shown(score_list)} and in columns "
            f"such as {shown(score_columns[0])}. Keep one of the two."
        )
    classes = _classes_in(schema)
    if score_columns:
        classes = check_class_names(name.removeprefix(prefix) for name in score_columns)
    truth, label, weight = (
        name if name in names else None for name in (columns.truth, columns.label, columns.weight)
    )
    taken = {columns.id, truth, label, weight, score_list, *score_columns}
    rest = {name: count for name, count in Counter(names).items() if name not in taken}
    others = dict.fromkeys(
        name
        for name, count in rest.items()
        # An index that pandas wrote down is a row number.
        if count == 1 and is_plain(schema.field(name).type) and not name.startswith(_INDEX)
    )
    layout = ColumnLayout(
        id=columns.id,
        truth=truth,
        label=label,
        weight=weight,
        score_columns=score_columns,
        score_list=score_list,
        classes=classes,
        others=tuple(others),
        unusable=tuple(name for name in rest if name not in others),
    )
    if layout.label is None and not layout.has_scores:
        raise InputError(
            f"There is neither a column {shown(columns.label)} nor scores ({shown(prefix)} and "
            f"the class name, or a list column {shown(columns.scores)}); the columns are "
            f"{listed(names, most=12)}. {_option('label')}"
        )
    _check_types(schema, layout)
    return layout


def metadata_of(classes: tuple[str, ...]) -> dict[bytes, bytes]:
    """The metadata of a schema that carries class names."""
    return {CLASSES_KEY: json.dumps(classes, ensure_ascii=False).encode()}


def _option(role: str) -> str:
    option = "--score-prefix" if role == "score_prefix" else f"--{role}-column"
    return f"Name another with `{option} NAME` (in Python: `ColumnNames({role}=NAME)`)."


def _check_presence(names: list[str], columns: ColumnNames) -> None:
    for role in ("id", *columns.renamed):
        wanted = getattr(columns, role)
        if role == "score_prefix":
            found = any(name.startswith(wanted) for name in names)
        else:
            found = wanted in names
        if not found:
            what = "column that starts with" if role == "score_prefix" else "column"
            raise InputError(
                f"There is no {what} {shown(wanted)}; the columns are {listed(names, most=12)}. "
                f"{_option(role)}"
            )
    for name, count in Counter(names).items():
        special = name in columns.reserved or name.startswith(columns.score_prefix)
        if special and count > 1:
            raise InputError(f"The column {shown(name)} occurs more than once. Keep one.")


def _has_list(schema: pa.Schema, columns: ColumnNames) -> bool:
    if columns.scores not in schema.names:
        return False
    kind = schema.field(columns.scores).type
    if is_list(kind):
        return True
    if "scores" in columns.renamed:
        raise InputError(
            f"The column {shown(columns.scores)} must hold a list of scores per input, but is of "
            f"the type {kind}."
        )
    return False  # a plain column that happens to be called so


def _classes_in(schema: pa.Schema) -> tuple[str, ...] | None:
    text = (schema.metadata or {}).get(CLASSES_KEY)
    if text is None:
        return None
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list):
        raise InputError(
            f'The metadata "{CLASSES_KEY.decode()}" must be a JSON list of class names.'
        )
    return check_class_names(names)


def _check_types(schema: pa.Schema, layout: ColumnLayout) -> None:
    for name in (*layout.score_columns, *([layout.weight] if layout.weight else [])):
        kind = schema.field(name).type
        if not is_number(kind):
            raise InputError(
                f"The column {shown(name)} must be numbers, but is of the type {kind}."
            )
    if layout.score_list is not None:
        kind = schema.field(layout.score_list).type.value_type
        if not is_number(kind):
            raise InputError(
                f"The lists in {shown(layout.score_list)} must be of numbers, but are of the type "
                f"{kind}."
            )
