"""All predictions of a study in two Parquet files: `labels.parquet` and `scores.parquet`.

`labels.parquet` has one row per input: `id`, `inputs` (test, or late for inputs of new classes),
`truth`, `weight`, `slice:<name>`, and a column of labels for each ensemble, such as
`dynsnap-cyc/average/g2/r0`. `scores.parquet` has a row group for each ensemble whose scores are
kept: the columns `address` and `scores`, in the order of the rows of `labels.parquet`. What is
inside stands in the metadata of `labels.parquet` under `dynsnap.published`. `_publish` writes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._untrusted import AnyOf, ListOf, Null, Schema, Table, Text, Whole, mismatch, parse_json
from dynsnap.errors import InputError
from dynsnap.predictions._declared import check_columns
from dynsnap.predictions._digest import digest_of, together
from dynsnap.predictions._keys import PredictionKey
from dynsnap.predictions._reading import reading
from dynsnap.predictions._schema import CLASSES_KEY, PUBLISHED_KEY, ColumnNames
from dynsnap.predictions._sources import ParquetBatches, TableBatches
from dynsnap.predictions._text import shown

LABELS, SCORES = "labels.parquet", "scores.parquet"
INPUTS = ("test", "late")  # in the order of their rows
SLICE = "slice:"

_KEYS = ListOf(Text(longest=1_000), most=50_000, distinct=True)
_ABOUT: Schema = Table(
    {
        "version": Whole(1, 1),
        "rows": Table({name: Whole() for name in INPUTS}),
        "labels": _KEYS,
        "scores": _KEYS,
        "scores_digest": AnyOf(Null(), Text(longest=100)),
    }
)


_AGAIN = "It is damaged, or was changed: publish the study again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is inside published results.

    Attributes:
        keys: The predictions, in the order of publication.
        scored: Those whose scores are kept, in the order of their row groups.
        rows: How many inputs of each kind there are.
        digest: The digest of the scores that belong to the labels.
    """

    keys: tuple[PredictionKey, ...]
    scored: tuple[PredictionKey, ...]
    rows: Mapping[str, int]
    digest: str | None

    @classmethod
    def listed(cls, folder: Path) -> "Contents":
        """What the labels in a folder list; nothing else of the file is looked at."""
        import pyarrow.parquet as pq

        with reading(folder / LABELS):
            return cls.of(pq.read_schema(folder / LABELS))

    @classmethod
    def of(cls, schema: pa.Schema) -> "Contents":
        """What the schema of the labels lists."""
        check_columns(len(schema))
        text = (schema.metadata or {}).get(PUBLISHED_KEY)
        if text is None:
            raise InputError(f"Its metadata lacks `{PUBLISHED_KEY.decode()}`. {_AGAIN}")
        about = parse_json(text)
        if (problem := mismatch(_ABOUT, about)) is not None:
            raise InputError(f"In `{PUBLISHED_KEY.decode()}`, {problem}. {_AGAIN}")
        keys, scored = (_keys(about[name]) for name in ("labels", "scores"))
        if not {key.column for key in keys} <= set(schema.names) or not set(scored) <= set(keys):
            raise InputError(f"It lacks labels that it lists. {_AGAIN}")
        digest = about["scores_digest"]
        return cls(keys=keys, scored=scored, rows=about["rows"], digest=digest)

    def place_in_labels(self, key: PredictionKey) -> tuple[int, int]:
        """From which row to which row the inputs of an ensemble stand."""
        start = 0 if key.inputs == "test" else self.rows["test"]
        return start, start + self.rows[key.inputs]

    def place_in_scores(self, key: PredictionKey) -> tuple[int, int]:
        """From which row to which row the scores of an ensemble stand."""
        before = self.scored[: self.scored.index(key)]
        start = sum(self.rows[one.inputs] for one in before)
        return start, start + self.rows[key.inputs]


def is_published(folder: Path) -> bool:
    """Whether a folder holds published predictions, sound or damaged."""
    import pyarrow.parquet as pq

    if not (folder / LABELS).is_file():  # a pipe would be waited for
        return False
    try:
        return PUBLISHED_KEY in (pq.read_metadata(folder / LABELS).metadata or {})
    except (OSError, pa.ArrowException):
        return True  # what is wrong with it is said where it is read


def open_published(folder: Path, key: PredictionKey, columns: ColumnNames) -> TableBatches:
    """The predictions of one ensemble as batches of rows, with columns of the given names."""
    with reading(folder / LABELS):
        labels = ParquetBatches.looked_at(str(folder / LABELS))
        contents = Contents.of(labels.schema)
        table = _labels_of(key, contents, labels, columns)
    if key not in contents.scored:
        return TableBatches(table, labels.verification)
    with reading(folder / SCORES):
        scores = ParquetBatches.looked_at(str(folder / SCORES))
        column = _scores_of(key, contents, scores)
        table = table.append_column(columns.scores, column)
    return TableBatches(table, together([labels.verification, scores.verification]))


def published_labels(folder: Path, keys: Sequence[PredictionKey]) -> pa.Table:
    """Labels of ensembles on the same inputs, all read at once: `id`, `truth`, and their columns.

    Args:
        folder: Published results.
        keys: The ensembles, all on one kind of inputs.
    """
    with reading(folder / LABELS):
        source = ParquetBatches.looked_at(str(folder / LABELS))
        contents = Contents.of(source.schema)
        if source.rows != sum(contents.rows.values()) or not set(keys) <= set(contents.keys):
            raise InputError(f"It lacks rows or labels that it lists. {_AGAIN}")
        (start, stop), *_ = {contents.place_in_labels(key) for key in keys}
        wanted = dict.fromkeys(["id", "truth", *(key.column for key in keys)])
        columns = [name for name in wanted if name in source.schema.names]
        source.check_whole(columns)
        batches = list(source.batches(columns, start=start, stop=stop))
        if not batches:
            raise InputError(f"It has no rows for {keys[0]}. {_AGAIN}")
        return pa.Table.from_batches(batches)


def _labels_of(
    key: PredictionKey, contents: Contents, source: ParquetBatches, names: ColumnNames
) -> pa.Table:
    """The rows of one ensemble, as the columns of a file of its own."""
    if source.rows != sum(contents.rows.values()) or key not in contents.keys:
        raise InputError(f"It lacks rows or labels that it lists. {_AGAIN}")
    schema = source.schema
    slices = [name for name in schema.names if name.startswith(SLICE)]
    wanted = {
        names.id: "id",
        names.truth: "truth",
        names.weight: "weight",
        names.label: key.column,
    }
    for name in slices:
        own = name.removeprefix(SLICE)
        if own in wanted or own == names.scores or own.startswith(names.score_prefix):
            raise InputError(
                f"It has a slice {shown(own)}, which is the name of a column that states something "
                "else. Read it with another name for that column (such as --truth-column), or "
                "publish the study without the slice."
            )
        wanted[own] = name
    wanted = {name: column for name, column in wanted.items() if column in schema.names}
    start, stop = contents.place_in_labels(key)
    source.check_whole(list(wanted.values()))
    batches = list(source.batches(list(wanted.values()), start=start, stop=stop))
    if not batches:
        raise InputError(f"It has no rows for {key}. {_AGAIN}")
    table = pa.Table.from_batches(batches)
    # A slice that only other inputs have is empty here, and left out.
    kept = {
        name: table.column(column)
        for name, column in wanted.items()
        if not (column in slices and table.column(column).null_count == len(table))
    }
    classes = (schema.metadata or {}).get(CLASSES_KEY)
    return pa.table(kept, metadata=None if classes is None else {CLASSES_KEY: classes})


def _scores_of(key: PredictionKey, contents: Contents, source: ParquetBatches) -> pa.ChunkedArray:
    if contents.digest is not None and digest_of(Path(source.path), "Parquet") != contents.digest:
        raise InputError(f"It does not belong to the {LABELS} beside it. {_AGAIN}")
    if source.rows != sum(contents.rows[one.inputs] for one in contents.scored):
        raise InputError(f"It has {source.rows:,} rows, not those that {LABELS} lists. {_AGAIN}")
    for name in ("address", "scores"):
        if source.schema.names.count(name) != 1:
            raise InputError(f"It must have one column {shown(name)}. {_AGAIN}")
    start, stop = contents.place_in_scores(key)
    source.check_whole(["address", "scores"])
    batches = list(source.batches(["address", "scores"], start=start, stop=stop))
    for batch in batches:
        if not pc.all(pc.equal(batch.column("address"), str(key))).as_py():
            raise InputError(f"Rows of {key} are of another ensemble. {_AGAIN}")
    return pa.chunked_array([batch.column("scores") for batch in batches])


def _keys(texts: Sequence[str]) -> tuple[PredictionKey, ...]:
    def parsed() -> Iterator[PredictionKey]:
        for text in texts:
            if (key := PredictionKey.parse(text)) is None:
                raise InputError(f"It lists predictions as {shown(text)}. {_AGAIN}")
            yield key

    return tuple(parsed())
