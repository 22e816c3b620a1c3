"""Frames, Arrow tables, dicts of arrays and files of every format hold the same predictions."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap import Predictions, compare, gate, read, stabilize
from dynsnap.comparison import flips, to_json
from dynsnap.errors import ComparisonError, DynSnapError, InputError, PlanError
from dynsnap.predictions import ColumnNames, read_models, stream, write
from tests.messages import naming

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)


class OnlyArrow:
    """A table of a library that is known by its Arrow stream alone."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


FRAMES = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas, ids as index": lambda columns: pd.DataFrame(columns).set_index("id"),
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "batch": lambda columns: pa.RecordBatch.from_pydict(dict(columns)),
    "stream": lambda columns: pa.table(columns).to_reader(),
    "other": lambda columns: OnlyArrow(pa.table(columns)),
}


def columns_of(rows=40, seed=0, **more):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, rows)
    said = np.where(rng.random(rows) < 0.8, truth, rng.integers(0, 3, rows))
    animals = np.array(["cat", "dog", "eel"], object)
    return {
        "id": list(range(100, 100 + rows)),
        "truth": animals[truth].tolist(),
        "label": animals[said].tolist(),
        "side": ["left", "right"] * (rows // 2),
    } | more


def same(one, other):
    """Two predictions say the same of the same inputs in the same order."""
    assert one.ids.tolist() == other.ids.tolist()
    assert one.classes == other.classes
    for name in ("labels", "truth", "scores", "weights"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(mine, theirs)
    assert {name: column.values for name, column in one.slices.items()} == {
        name: column.values for name, column in other.slices.items()
    }
    for name, column in one.slices.items():
        assert column.codes.tolist() == other.slices[name].codes.tolist()


@st.composite
def tables(draw):
    """Columns of predictions, with scores or labels, gaps in the truth, weights and slices."""
    rows = draw(st.integers(1, 12))
    classes = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    some = st.lists(st.sampled_from(classes), min_size=rows, max_size=rows)
    ids = draw(st.sampled_from([list(range(rows)), [f"i{place}" for place in range(rows)]]))
    columns = {"id": ids, "label": draw(some)}
    if draw(st.booleans()):
        columns["truth"] = [
            None if gap else name for name, gap in zip(draw(some), draw(gaps(rows)), strict=True)
        ]
    if draw(st.booleans()):
        raw = np.array(draw(st.lists(st.integers(1, 9), min_size=len(classes) * rows,
                                     max_size=len(classes) * rows)), float)  # fmt: skip
        scores = raw.reshape(rows, -1)
        scores /= scores.sum(axis=1, keepdims=True)
        columns |= {f"score:{name}": scores[:, place] for place, name in enumerate(classes)}
    if draw(st.booleans()):
        columns["weight"] = [float(draw(st.integers(1, 9))) for _ in range(rows)]
    if draw(st.booleans()):
        columns["side"] = [draw(st.sampled_from(["left", "right"])) for _ in range(rows)]
    return columns


def gaps(rows):
    return st.lists(st.booleans(), min_size=rows, max_size=rows)


@given(
    columns=tables(),
    make=st.sampled_from(list(FRAMES.values())),
    ending=st.sampled_from(
        ["parquet", "arrow", "csv", "tsv", "tsv.gz", "jsonl", "jsonl.gz", "npz"]
    ),
)
def test_every_table_and_every_file_holds_the_same(columns, make, ending):
    expected = read(columns)
    same(read(make(columns)), expected)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"made.{ending}")
        write(expected, file)
        found = read(file)
        assert found.ids.tolist() == expected.ids.tolist()
        assert found.names_of(found.labels).tolist() == expected.names_of(expected.labels).tolist()
        assert found.unlabelled == expected.unlabelled
        with stream([file]) as blocks:
            ((streamed,),) = list(blocks)
        same(streamed, found)


@given(
    classes=st.one_of(
        st.lists(st.integers(-3, 9), min_size=2, max_size=4, unique=True),
        st.lists(NAMES, min_size=2, max_size=4, unique=True),
        st.just([False, True]),
        st.just([0.0, 1.0]),
    ),
    rows=st.integers(1, 20),
    seed=st.integers(0, 2**32 - 1),
)
def test_arrays_of_scikit_learn_are_taken_as_they_are(classes, rows, seed):
    rng = np.random.default_rng(seed)
    known = np.sort(np.array(classes))  # as classes_ is
    proba = rng.dirichlet(np.ones(len(known)), rows)
    truth = rng.choice(known, rows)
    made = Predictions.from_arrays(range(rows), proba, known, truth)
    assert (made.truth == np.searchsorted(known, truth)).all()
    assert (made.labels == proba.argmax(axis=1)).all()
    frame = pd.DataFrame(proba, columns=known).assign(id=range(rows), y=truth)
    same(Predictions.from_frame(frame, truth="y", scores=list(known)), made)
    columns = {f"p{name}": proba[:, place] for place, name in enumerate(made.classes)}
    plain = pl.DataFrame({"id": range(rows), "y": pd.Series(truth).to_list(), **columns})
    same(Predictions.from_frame(plain, truth="y", scores="p"), made)
    mapped = dict(zip(known.tolist(), columns, strict=True))
    same(Predictions.from_frame(plain, truth="y", scores=mapped), made)


def test_truth_with_gaps_and_classes_without_scores():
    proba = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]
    made = Predictions.from_arrays([1, 2, 3], proba, np.array([0, 1]), np.array([1, np.nan, 7]))
    assert made.classes == ("0", "1", "7")
    assert made.truth.tolist() == [1, -1, 2]
    placed = Predictions.from_arrays([1, 2, 3], proba, ["a", "b"], [0, 1, 1], positions=True)
    assert placed.truth.tolist() == [0, 1, 1]


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_everything_takes_every_table_in_any_mixture(make, tmp_path):
    old, new = columns_of(seed=1), columns_of(seed=2)
    del new["truth"]
    write(read(old), tmp_path / "old.parquet")
    expected = to_json(compare(read(old), read(new), names=["a", "b"], resamples=50))
    found = to_json(compare(tmp_path / "old.parquet", make(new), names=["a", "b"], resamples=50))
    assert found == expected
    held = to_json(compare(read(old), make(new), names=["a", "b"], resamples=50))
    assert held == expected
    rules = gate.Rule(metric="lost", at_most=0.5)
    assert gate.check(make(old), tmp_path / "old.parquet", rules).passed
    assert flips(make(old), make(new)).num_rows > 0


def test_stabilize_takes_tables():
    old = {"id": [1, 2], "label": ["dog", "dog"]}
    new = pd.DataFrame({"id": [1, 2], "score:cat": [0.55, 0.9], "score:dog": [0.45, 0.1]})
    kept = stabilize(old, new, margin=0.2)
    assert kept.names_of(kept.labels).tolist() == ["dog", "cat"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("ending", ["", "csv", "jsonl", "parquet"])
def test_wide_and_long_tables_hold_several_models(make, ending, tmp_path):
    one, two = columns_of(seed=1), columns_of(seed=2)
    two["truth"] = one["truth"]
    wide = {"id": one["id"], "truth": one["truth"], "v1": one["label"], "v2": two["label"]}
    order = np.random.default_rng(0).permutation(80)
    order = order[np.argsort(order >= 40, kind="stable")]  # v1 comes first
    long = {
        name: np.array(one[name] + two[name], object)[order].tolist()
        for name in ("id", "truth", "label")
    }
    long["model"] = np.array(["v1"] * 40 + ["v2"] * 40)[order].tolist()
    expected = compare(read(wide | {"label": wide["v1"]}), read(wide | {"label": wide["v2"]}))
    for table, columns in ((wide, {"labels": ["v1", "v2"]}), (long, {"model": "model"})):
        source = make(table)
        if ending:
            source = tmp_path / f"table.{ending}"
            frame = pl.DataFrame(table)
            writers = {"csv": "write_csv", "jsonl": "write_ndjson", "parquet": "write_parquet"}
            getattr(frame, writers[ending])(source)
        found = compare(source, columns=columns)
        assert [pair.old + pair.new for pair in found.pairs] == ["v1v2"]
        assert found.pairs[0].transitions == expected.pairs[0].transitions
        assert list(read_models(source, columns=columns)) == ["v1", "v2"]
        with pytest.raises(InputError, match=naming("2", "v1", "v2", "read_models")):
            read(source, columns=columns)


def test_slices_come_from_a_frame():
    old, new = columns_of(seed=1), columns_of(seed=2, truth=None)
    del new["truth"], old["side"], new["side"]
    side = {
        "id": old["id"][:30],
        "hour": ["day", "night"] * 15,
        "text": [f"t{n}" for n in range(30)],
    }
    for make in (dict, pd.DataFrame, pl.DataFrame):
        found = compare(pd.DataFrame(old), new, slices=make(side))
        sizes = {g.name: g.inputs for g in found.pairs[0].groups if g.column == "hour"}
        assert sizes == {"day": 15, "night": 15, "(none)": 10}
        made = Predictions(
            ids=old["id"], classes=["cat", "dog", "eel"], labels=old["label"], slices=make(side)
            if make is not dict else pl.DataFrame(side),
        )  # fmt: skip
        assert made.slices["hour"].values == ("day", "night", "(none)")
    rule = gate.Rule(metric="lost", at_most=0.7, slice=("hour", "day"), min_count=5)
    assert gate.check(old, new, rule, slices=side).outcomes[0].inputs == 15
    with pytest.raises(ComparisonError, match="slices"):
        compare(old, new, slices={"id": ["x", "y"], "hour": ["day", "night"]})


def test_columns_are_named_once(tmp_path):
    old = columns_of(seed=1)
    frame = pd.DataFrame(old).rename(columns={"id": "image", "truth": "y", "label": "said"})
    names = {"id": "image", "truth": "y", "label": "said"}
    same(read(frame, columns=names), read(old))
    same(read(frame, columns=ColumnNames(**names)), read(old))
    rules = tmp_path / "gate.toml"
    rules.write_text(
        '[columns]\nid = "image"\ntruth = "y"\nlabel = "said"\n'
        '[[rule]]\nmetric = "lost"\nat_most = 0.5\n'
    )
    assert gate.check(frame, frame.copy(), rules).passed
    with pytest.raises(PlanError, match=naming("ids", "id")):
        compare(frame, frame.copy(), columns={"ids": "image"})


BAD = {
    "the index holds the ids": (
        pd.DataFrame({"label": ["a", "b"]}, index=["x", "y"]),
        ("id", "index", "rename_axis"),
    ),
    "the index counts the rows": (pd.DataFrame({"label": ["a", "b"]}), ("id", "reset_index")),
    "no ids at all": (pl.DataFrame({"label": ["a", "b"]}), ("id", "label")),
    "a query": (pl.DataFrame({"id": [1]}).lazy(), ("LazyFrame", r"collect\(\)")),
    "bare arrays": (np.zeros((2, 2)), ("ndarray", "from_arrays")),
    "a number": (3, ("int",)),
    "columns of two lengths": ({"id": [1, 2], "label": ["a"]}, ("id", "2", "label", "1")),
    "one text": ({"id": "ab", "label": ["a", "b"]}, ("id", "str")),
    "mixed kinds": ({"id": [1, "x"], "label": ["a", "b"]}, ("id",)),
    "mixed kinds of pandas": (pd.DataFrame({"id": [1, "x"], "label": ["a", "b"]}), ("[iI]d",)),
    "logits": (
        pd.DataFrame({"id": [1], "score:a": [2.5], "score:b": [-0.5]}),
        ("logits", "softmax", "score"),
    ),
    "large logits": (
        pd.DataFrame({"id": [1], "score:a": [2.5], "score:b": [1.5]}),
        ("softmax", "4"),
    ),
    "negative weights": (
        pd.DataFrame({"id": [1, 2], "label": ["a", "b"], "weight": [1.0, -2.0]}),
        ("weight", "-2", "row 1"),
    ),
    "ids as labels": (
        {"id": range(200), "label": [f"u{place}" for place in range(200)]},
        ("label", "200"),
    ),
    "positions as truth": (
        {"id": [1, 2], "scores": [[0.5, 0.5]] * 2, "classes": ["a", "b"], "truth": [0, 1]},
        ("truth", "positions"),
    ),
    "rows of scores of two lengths": (
        {"id": [1, 2], "scores": [[0.5, 0.5], [1.0]], "classes": ["a", "b"]},
        ("scores",),
    ),
    "three axes": ({"id": [1], "scores": np.ones((1, 1, 1)), "classes": ["a"]}, ("three axes",)),
    "an empty frame": (pd.DataFrame({"id": [], "label": []}), ("rows|class",)),
    "two columns of one name": (
        pa.table([pa.array([1]), pa.array(["a"]), pa.array(["b"])], ["id", "label", "label"]),
        ("label", "once"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "named"), BAD.values(), ids=BAD)
def test_what_is_wrong_with_a_table_is_said_in_one_line(source, named):
    with pytest.raises(InputError, match=naming(*named)) as found:
        read(source)
    assert "\n" not in str(found.value)
    with pytest.raises(DynSnapError) as found:
        compare({"id": [1, 2], "label": ["a", "b"]}, source)
    assert "\n" not in str(found.value)


def test_arrays_that_cannot_be_predictions_are_refused():
    proba = np.array([[0.9, 0.1], [0.2, 0.8]])
    for bad, named in (
        (lambda: Predictions.from_arrays([1, 2], proba[:, 1], [0, 1]), ("proba", "predict_proba")),
        (lambda: Predictions.from_arrays([1, 2], proba, [0, 1, 2]), ("proba", "3")),
        (lambda: Predictions.from_arrays([1, 1], proba, [0, 1]), ("unique",)),
        (lambda: Predictions.from_arrays([1, 2], proba, [1, 2], [0, 1]), ("truth", "positions")),
        (lambda: Predictions.from_arrays([1, 2], np.log(proba), [0, 1]), ("logits",)),
        (lambda: Predictions.from_frame(pd.DataFrame({"ID": [1]}), label="x"), ("id", "ID")),
        (lambda: Predictions.from_frame("old.csv"), ("dynsnap.read",)),
    ):
        with pytest.raises(InputError, match=naming(*named)):
            bad()


def test_frames_without_a_common_id_are_refused():
    old, new = columns_of(seed=1), columns_of(seed=2)
    with pytest.raises(ComparisonError, match=naming("100", "900")):
        compare(pd.DataFrame(old), pl.DataFrame(new | {"id": list(range(900, 940))}))
    counted = pd.DataFrame(new).drop(columns="id").reset_index(names="id")
    with pytest.raises(ComparisonError, match=naming("index", "id=")):
        compare(pd.DataFrame(old), counted)


def test_a_table_compared_with_itself_is_no_gate():
    frame = pd.DataFrame(columns_of())
    with pytest.raises(PlanError, match="the same table"):
        gate.check(frame, frame, gate.Rule(metric="lost", at_most=0.5))


def test_classes_that_differ_by_case_or_spaces_are_named():
    old, new = columns_of(seed=1), columns_of(seed=2)
    new["truth"] = None  # as if the column were not there
    new["label"] = [f"{label} ".title() if label == "cat" else label for label in new["label"]]
    found = compare(old, new)
    assert any("--rename 'Cat =cat'" in note for note in found.notes)  # quoted for a shell
    with pytest.raises(ComparisonError, match="--rename"):
        gate.check(old, new, gate.Rule(metric="lost", at_most=0.9))
    assert compare(old, new, rename={"Cat ": "cat"}).classes == ("cat", "dog", "eel")


def test_a_column_with_nearly_as_many_values_as_rows_is_never_taken_in_silence():
    found = read({"id": range(20), "label": [f"u{place}" for place in range(20)]})
    assert any("20" in note and "label" in note for note in found.notes)
    assert not read(columns_of(20)).notes


def test_no_library_of_frames_is_needed_for_others():
    # pyarrow itself looks for pandas; here neither it nor polars can be found.
    code = (
        "import sys\n"
        "class Nothing:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name in ('pandas', 'polars'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Nothing())\n"
        "import dynsnap, pyarrow as pa\n"
        "table = pa.table({'id': [1, 2], 'label': ['a', 'b']})\n"
        "dynsnap.compare(table, {'id': [1, 2], 'label': ['a', 'a']}, resamples=10)\n"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
