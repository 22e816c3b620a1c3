"""The labels of all ensembles of a study on the same inputs: of a run folder, or published.

Methods are compared with each other on the same inputs, replicate by replicate. That needs labels
alone, and all of them at once: published results are one file, which is read once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dynsnap._types import AnyArray, Labels
from dynsnap.errors import FileError
from dynsnap.predictions._keys import Kind, PredictionKey
from dynsnap.predictions._published import is_published, published_labels
from dynsnap.predictions._read import read
from dynsnap.predictions._stored import stored_places
from dynsnap.predictions._text import on_one_line


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StudyLabels:
    """The labels of several ensembles on the same inputs.

    Attributes:
        ids: The ids of the inputs, as text.
        truth: The true class of each, as a number.
        labels: What each ensemble labels them as, in the same numbers; -1 for none.
    """

    ids: AnyArray
    truth: Labels
    labels: Mapping[PredictionKey, Labels]


def study_labels(
    folder: str | Path, *, kind: Kind = "test", combination: str = "average"
) -> StudyLabels | None:
    """The labels of every ensemble of a study; None where there are none with a known truth.

    Args:
        folder: A run folder, or published results.
        kind: "test" for the test inputs, "late" for those of classes that are new in a later
            generation.
        combination: How members are combined.

    Raises:
        FileError: A file is damaged, or the ensembles were not measured on the same inputs.
    """
    folder = Path(folder)
    places = {
        key: place
        for key, place in sorted(stored_places(folder).items(), key=lambda one: one[0])
        if key.kind == kind and key.combination == combination
    }
    if not places:
        return None
    columns: dict[str, pa.ChunkedArray] = {}
    if is_published(folder):
        table = published_labels(folder, list(places))
        columns = {name: table.column(name) for name in table.column_names}
    else:
        for key, place in places.items():
            said = read(str(place))
            ids, truth = said.id_column, said.truth
            if truth is None:
                return None
            names = pa.array(said.classes, pa.string())
            known = {"id": pa.chunked_array([ids]), "truth": _named(truth, names)}
            if columns and any(not columns[name].equals(one) for name, one in known.items()):
                raise FileError(
                    f"{on_one_line(place)} has other inputs than {on_one_line(min(places))}. Run "
                    "the study again."
                )
            columns |= known | {key.column: _named(said.labels, names)}
    if "truth" not in columns:
        return None
    texts = {name: column.cast(pa.string()) for name, column in columns.items()}
    ids = texts.pop("id")
    classes = pc.unique(pa.chunked_array([part for one in texts.values() for part in one.chunks]))
    codes = {name: _coded(one, classes) for name, one in texts.items()}
    return StudyLabels(
        ids=np.asarray(ids.to_pylist(), object),
        truth=codes["truth"],
        labels={key: codes[key.column] for key in places},
    )


def _named(codes: AnyArray, names: pa.Array) -> pa.ChunkedArray:
    return pa.chunked_array([names.take(pa.array(codes, mask=np.asarray(codes) < 0))])


def _coded(texts: pa.ChunkedArray, classes: pa.Array) -> Labels:
    found = pc.index_in(texts, value_set=classes, skip_nulls=True)
    codes: Labels = found.fill_null(-1).to_numpy().astype(np.int64)
    return codes
