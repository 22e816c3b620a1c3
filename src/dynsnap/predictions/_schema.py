"""Which column of a file is what, and which types it may have."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dynsnap.errors import InputError, PlanError, did_you_mean
from dynsnap.predictions._arrow import bare, is_list, is_number, is_plain, is_text, type_name
from dynsnap.predictions._declared import check_columns
from dynsnap.predictions._keys import FORM
from dynsnap.predictions._text import check_class_names, listed, shown

if TYPE_CHECKING:
    from dynsnap.predictions.tasks import Task

INDEX = "__index_level_"
CLASSES_KEY = b"dynsnap.classes"  # in the metadata of a schema: the class names, as a JSON list
PUBLISHED_KEY = b"dynsnap.published"  # what is inside the labels of a published study


_OF_TASKS = ("score", "correct")  # columns that only some tasks look for


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
        score: The score of the positive class, for the task "binary".
        correct: The grade of an answer, for the task "graded".
        model: In a table with a row for each input and model, the column that names the model.
        labels: In a table with a column of labels for each model, those columns, oldest first.

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
    score: str = "score"
    correct: str = "correct"
    model: str | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.labels, str) or not isinstance(self.labels, Sequence):
            raise PlanError(
                f"`labels` must be a list of columns, one for each model: {self.labels!r}."
            )
        object.__setattr__(self, "labels", tuple(self.labels))
        if self.model is not None and self.labels:
            raise PlanError(
                "Name `model` for a table with a row for each input and model, or `labels` for one "
                "with a column for each model, not both."
            )
        roles = [role for role in self._single if role not in _OF_TASKS or role in self.renamed]
        names = [getattr(self, role) for role in roles] + list(self.labels)
        if self.model is not None:
            names.append(self.model)
        if not all(isinstance(name, str) and name for name in names):
            raise PlanError(f"Every column needs a name, but the names are {names}.")
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            held = [role for role in roles if getattr(self, role) == twice[0]]
            held += ["labels"] * (twice[0] in self.labels) + ["model"] * (self.model == twice[0])
            raise PlanError(
                f"Every column is named once, but {shown(twice[0])} is named "
                f"{'for ' if len(held) > 1 else 'twice for '}"
                f"{' and '.join(f'`{role}`' for role in held)}. Name another column there."
            )

    @classmethod
    def of(cls, given: "ColumnNames | Mapping[str, Any] | None") -> "ColumnNames":
        """Column names from a mapping of roles to names, as a `[columns]` table has them.

        Example:
            >>> ColumnNames.of({"id": "image"}).id
            'image'
        """
        if isinstance(given, ColumnNames):
            return given
        return cls(**check_columns_table(given or {}, "`columns`"))

    @classmethod
    def roles(cls) -> tuple[str, ...]:
        """The kinds of columns, as a `[columns]` table may name them."""
        return tuple(field.name for field in fields(cls))

    @property
    def _single(self) -> tuple[str, ...]:
        """The roles of one column each."""
        every = (field.name for field in fields(self))
        return tuple(role for role in every if role not in ("model", "labels"))

    @property
    def many_models(self) -> bool:
        """Whether a table holds the predictions of several models."""
        return self.model is not None or bool(self.labels)

    @property
    def of_one(self) -> "ColumnNames":
        """The same names for the predictions of one model."""
        return replace(self, model=None, labels=())

    @property
    def renamed(self) -> tuple[str, ...]:
        """The roles that were given another name, and so must be in the file."""
        plain = {field.name: field.default for field in fields(self) if field.name in self._single}
        return tuple(role for role, name in plain.items() if getattr(self, role) != name)

    @property
    def reserved(self) -> frozenset[str]:
        """The names that a slice cannot have."""
        return frozenset({self.id, self.truth, self.label, self.scores, self.weight})


def check_columns_table(given: Any, where: str) -> dict[str, Any]:
    """What a table `[columns]` states, if it names columns for known roles."""
    if not isinstance(given, Mapping):
        raise PlanError(f'{where} must be a table, such as id = "image", got {given!r}.')
    known = ColumnNames.roles()
    for role, name in given.items():
        if role not in known:
            raise PlanError(
                f"There is no kind of column {role!r} in {where}. {did_you_mean(str(role), known)}"
            )
        if role == "labels":
            good = isinstance(name, list | tuple) and all(isinstance(each, str) for each in name)
        else:
            good = isinstance(name, str) or (role == "model" and name is None)
        if not good:
            what = "a list of names" if role == "labels" else "a name"
            raise PlanError(f"{role!r} in {where} must be {what}, got {name!r}.")
    return {role: tuple(name) if role == "labels" else name for role, name in given.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLayout:
    """Which column of one file is what, by name; None or empty for what it does not have.

    Attributes:
        score_columns: One column per class.
        score_list: One column that holds a list of scores per input.
        classes: The class names as far as the schema shows them, in the order of the scores.
        others: Columns that may be slices.
        unusable: Columns that cannot be, because of their type or because they share a name.
        task: What answers are, where they are no classes; then `label` holds them.
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
    task: "Task | None" = None

    @property
    def has_scores(self) -> bool:
        """Whether the file holds scores, in whichever form."""
        return bool(self.score_columns) or self.score_list is not None

    @property
    def essential(self) -> tuple[str, ...]:
        """Every column but the slices."""
        single = (self.id, self.truth, self.label, self.weight, self.score_list)
        return (*(name for name in single if name is not None), *self.score_columns)


def interpret(schema: pa.Schema, columns: ColumnNames, task: "Task | None" = None) -> ColumnLayout:
    """Find out which column of a file is what, for classes or for another task.

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
    if task is not None:
        return task.interpret(schema, columns)
    check_presence(schema, columns)
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
    others, unusable = slice_columns(schema, taken)
    layout = ColumnLayout(
        id=columns.id,
        truth=truth,
        label=label,
        weight=weight,
        score_columns=score_columns,
        score_list=score_list,
        classes=classes,
        others=others,
        unusable=unusable,
    )
    if layout.label is None and not layout.has_scores:
        raise InputError(
            f"There is neither a column {shown(columns.label)} nor scores ({shown(prefix)} and "
            f"the class name, or a list column {shown(columns.scores)}); the columns are "
            f"{listed(names, most=12)}. {_other_task(schema, columns) or _option('label')}"
        )
    _check_types(schema, layout)
    return layout


def slice_columns(
    schema: pa.Schema, taken: Collection[str | None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that may be slices, and those that cannot be, of all that are nothing else."""
    rest = {name: count for name, count in Counter(schema.names).items() if name not in taken}
    others = dict.fromkeys(
        name
        for name, count in rest.items()
        # An index that pandas wrote down is a row number.
        if count == 1 and is_plain(schema.field(name).type) and not name.startswith(INDEX)
    )
    return tuple(others), tuple(name for name in rest if name not in others)


# What columns of other tasks are often called, and how these are asked for.
_ELSEWHERE = {
    "binary": ("score", "proba", "probability", "prob", "y_score", "y_prob", "y_proba", "p"),
    "graded": ("correct", "grade", "is_correct", "passed", "reward"),
    "regression": ("prediction", "predicted", "y_pred", "pred", "value"),
    "ranking": ("ranking", "items", "recommendations", "top_k"),
    "multilabel": ("labels", "tags", "prediction", "predicted", "y_pred", "pred"),
}
_ASKED_FOR = {
    "binary": "the score of the positive class, read it with `--task binary --score-column NAME`",
    "graded": "the grade of each answer, read it with `--task graded --correct-column NAME`",
    "regression": "a predicted number, read it with `--task regression --tolerance NUMBER "
    "--label-column NAME`",
    "ranking": "a ranking, read it with `--task ranking --k 10 --label-column NAME`",
    "multilabel": "a set of labels, read it with `--task multilabel --label-column NAME`",
}


def _is_numeric(kind: pa.DataType) -> bool:
    return is_number(kind) or bool(pa.types.is_boolean(kind))


def _other_task(schema: pa.Schema, columns: ColumnNames) -> str:
    """What to do with a column that looks like the answers of another task; empty if none does."""
    for task, known in _ELSEWHERE.items():
        for name in (columns.score, columns.correct, *schema.names):
            if name not in schema.names or name.lower() not in known:
                continue
            kind = bare(schema.field(name).type)
            lists = task in ("ranking", "multilabel")
            if is_text(kind) or (is_list(kind) if lists else _is_numeric(kind)):
                said = _ASKED_FOR[task].replace("NAME", name)
                if task == "regression" and not pa.types.is_floating(kind):
                    # Most models predict classes, and call them so.
                    classes = f"the predicted class, read it with `--label-column {name}`"
                    said = f"{classes}; if it is {said}"
                return f'If {shown(name)} is {said} (in Python: `task="{task}"`).'
    return ""


def metadata_of(classes: tuple[str, ...]) -> dict[bytes, bytes]:
    """The metadata of a schema that carries class names."""
    return {CLASSES_KEY: json.dumps(classes, ensure_ascii=False).encode()}


def _option(role: str) -> str:
    option = "--score-prefix" if role == "score_prefix" else f"--{role}-column"
    return (
        f"Name another, which all files must have, with `{option} NAME` (in Python: "
        f"`columns={{{role!r}: NAME}}`)."
    )


def check_presence(schema: pa.Schema, columns: ColumnNames) -> None:
    """Raise unless the columns that were named are there, and each of them once."""
    names = schema.names
    for role in ("id", *columns.renamed):
        wanted = getattr(columns, role)
        if role == "score_prefix":
            found = any(name.startswith(wanted) for name in names)
        else:
            found = wanted in names
        if not found:
            what = "column that starts with" if role == "score_prefix" else "column"
            raise InputError(
                f"There is no {what} {shown(wanted)}; the columns are "
                f"{listed([name for name in names if not name.startswith(INDEX)], most=12)}. "
                f"{_option(role)} {_about_index(schema, wanted) if role == 'id' else ''}".rstrip()
            )
    for name, count in Counter(names).items():
        special = name in columns.reserved or name.startswith(columns.score_prefix)
        if special and count > 1:
            raise InputError(f"The column {shown(name)} occurs more than once. Keep one.")


def refuse_absent(schema: pa.Schema, name: str, *, role: str) -> None:
    """Raise if a table has no column of this name, which a caller gave for a role."""
    if name not in schema.names:
        names = [each for each in schema.names if not each.startswith(INDEX)]
        hint = _about_index(schema, name) if role == "id" else ""
        raise InputError(
            f"There is no column {shown(name)} for `{role}`; the columns are "
            f"{listed(names, most=12)}. {hint}{did_you_mean(name, names)}"
        )


def _about_index(schema: pa.Schema, wanted: str) -> str:
    """What to do about ids that are the index of a frame of pandas; empty for other tables."""
    if b"pandas" not in (schema.metadata or {}):
        return ""
    if any(name.startswith(INDEX) for name in schema.names):
        return (
            "The index of the frame is not a column: if it holds the ids, call "
            f"`frame.rename_axis({wanted!r})`. "
        )
    return (
        "The index of its frame only counts rows: if all frames have the same inputs in the "
        f"same order, call `frame.reset_index(names={wanted!r})`. "
    )


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
    if layout.label is not None and is_list(bare(schema.field(layout.label).type)):
        raise InputError(
            f"The column {shown(layout.label)} holds lists. If they are sets of labels, read them "
            "with `--task multilabel`; if they are rankings, with `--task ranking --k 10` (in "
            'Python: `task="multilabel"`, `task="ranking"`).'
        )
    for name in (*layout.score_columns, *([layout.weight] if layout.weight else [])):
        kind = schema.field(name).type
        if not is_number(kind):
            raise InputError(f"The column {shown(name)} must be numbers, but is {type_name(kind)}.")
    if layout.score_list is not None:
        kind = schema.field(layout.score_list).type.value_type
        if not is_number(kind):
            raise InputError(
                f"The lists in {shown(layout.score_list)} must be of numbers, but are of the type "
                f"{kind}."
            )
