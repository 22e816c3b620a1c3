"""Tasks measure what their definitions say, however rows come."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dynsnap
from dynsnap.comparison import Settings, compare_blocks
from dynsnap.comparison._count import InMemory
from dynsnap.predictions import align, stream
from dynsnap.predictions._predictions import trusted
from dynsnap.predictions.tasks import Graded, MultiLabel, Ranking, Regression, tasks_of
from tests.tasks import files, reference

FEW = Settings(resamples=40)


def predictions(task, values, *, truth=None, weights=None, classes=(), slices=None):
    return trusted(
        id_column=pa.array(range(len(values))),
        classes=tuple(classes),
        labels=np.zeros(len(values), np.int32),
        values=values,
        truth=truth,
        weights=None if weights is None else np.array(weights, float),
        slices=slices,
        task=task,
    )


def measured(old, new):
    (found,) = compare_blocks(InMemory(align(old, new)), FEW)
    return found


def holds(found, expected):
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value, abs=1e-12), name
        if found[name].low is not None:
            assert found[name].low <= found[name].value <= found[name].high


weights_of = st.none() | st.lists(st.integers(1, 5), min_size=6, max_size=6)
quarters = st.integers(-12, 12).map(lambda number: number / 4)


@given(
    st.lists(st.tuples(quarters, quarters, quarters), min_size=6, max_size=6),
    weights_of,
    st.sampled_from([0.0, 0.5, 1.25]),
    st.sampled_from([None, 0.25, 2.0]),
)
def test_regression_is_the_slow_reference(rows, weights, tolerance, near):
    task = Regression(tolerance=tolerance, truth_tolerance=near)
    old, new, truth = (np.array(each, float) for each in zip(*rows, strict=True))
    both = [
        predictions(task, each[:, None].copy(), truth=truth, weights=weights) for each in (old, new)
    ]
    found = measured(*both)
    expected = reference.regression(
        old, new, truth, weights or [1] * 6, tolerance, tolerance if near is None else near
    )
    holds(found.pairs[0].metrics, expected)
    error = reference.share(
        list(zip(new, truth, strict=True)), weights or [1] * 6, lambda row: abs(row[0] - row[1])
    )
    holds(found.generations[1].metrics, {"mean_absolute_error": error})


def packed(rows, width=4):
    return np.array([sorted(row) + [-1] * (width - len(row)) for row in rows], np.int32)


@pytest.mark.parametrize("kind", ["multilabel", "ranking"])
@given(
    st.lists(st.tuples(*[st.frozensets(st.integers(0, 3))] * 3), min_size=6, max_size=6),
    weights_of,
)
def test_sets_are_the_slow_reference(kind, rows, weights):
    task = MultiLabel() if kind == "multilabel" else Ranking(k=4)
    right = (lambda a, y: a == y) if kind == "multilabel" else (lambda a, y: bool(a & y))
    old, new, truth = zip(*rows, strict=True)
    both = [
        predictions(task, packed(each), truth=packed(truth), weights=weights, classes="abcd")
        for each in (old, new)
    ]
    found = measured(*both)
    expected = reference.sets(old, new, truth, weights or [1] * 6, right)
    holds(found.pairs[0].metrics, expected)
    groups = {group.name: group for group in found.pairs[0].groups if group.kind == "class"}
    for place, name in enumerate("abcd" if kind == "multilabel" else ""):
        inside = [place in a | b | y for a, b, y in rows]
        assert (name in groups) == any(inside)
        if name in groups:
            assert groups[name].inputs == sum(inside)
            chosen = [
                (row, w)
                for row, w, has in zip(rows, weights or [1] * 6, inside, strict=True)
                if has
            ]
            lost = reference.share(
                [row for row, _ in chosen],
                [w for _, w in chosen],
                lambda r, p=place: ((p in r[0]) == (p in r[2])) and ((p in r[1]) != (p in r[2])),
            )
            assert groups[name].metrics["lost"].value == pytest.approx(lost, abs=1e-12)


grades = st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=3)


@given(st.lists(st.tuples(grades, grades), min_size=6, max_size=6), weights_of)
def test_graded_answers_are_the_slow_reference(rows, weights):
    old, new = zip(*rows, strict=True)
    whole = all(len(each) == 1 and each[0] in (0, 1) for each in (*old, *new))
    repeated = any(len(each) > 1 for each in old)
    both = [
        predictions(
            Graded(whole=whole, repeated=repeated),
            np.array([[*row, *[math.nan] * (3 - len(row))] for row in each]),
            weights=weights,
        )
        for each in (old, new)
    ]
    found = measured(*both)
    holds(found.pairs[0].metrics, reference.graded(old, new, weights or [1] * 6))
    assert sum(vars_of(found.pairs[0].transitions)) == 6
    if repeated:
        floor = reference.noise_floor(old, weights or [1] * 6)
        holds(found.pairs[0].noise_floor, {"lost": floor, "gained": floor})
    else:
        assert found.pairs[0].noise_floor is None


def vars_of(counts):
    return counts.kept, counts.gained, counts.lost, counts.never


def test_several_answers_of_an_unchanged_model_lose_what_the_noise_floor_says():
    rng = np.random.default_rng(0)
    chance = rng.random(800)
    old, new = ((rng.random((800, 4)) < chance[:, None]).astype(float) for _ in range(2))
    task = Graded(whole=False, repeated=True)
    pair = measured(predictions(task, old), predictions(task, new)).pairs[0]
    floor = pair.noise_floor["lost"]
    assert floor.low <= pair.metrics["lost"].value <= floor.high
    assert pair.mcnemar is None


@pytest.mark.parametrize("kind", files.SETTINGS)
def test_files_of_any_order_and_block_give_what_memory_gives(kind, tmp_path):
    old, new = files.pair(tmp_path, kind)
    settings = files.SETTINGS[kind]
    whole = dynsnap.compare(old, new, **settings, resamples=40)
    tasks = tasks_of(
        settings["task"],
        {name: value for name, value in settings.items() if name != "task"},
        generations=2,
    )
    with stream([old, new], names=whole.alignment.names, tasks=tasks, rows_at_once=7) as blocks:
        (parts,) = compare_blocks(blocks, FEW)
    held = [dynsnap.read(path, task=task) for path, task in zip((old, new), tasks, strict=True)]
    memory = dynsnap.compare(*held, names=whole.alignment.names, resamples=40)
    for other in (parts, memory):
        assert other.pairs[0].transitions == whole.pairs[0].transitions
        assert {group.key for group in other.pairs[0].groups} == {
            group.key for group in whole.pairs[0].groups
        }
        for name, one in whole.pairs[0].metrics.items():
            again = other.pairs[0].metrics[name]
            assert again.value == pytest.approx(one.value, abs=1e-12, nan_ok=True), name
            assert again.high == pytest.approx(one.high, abs=1e-9), name
    assert {group.column for group in whole.pairs[0].groups} >= {"region"}
    assert whole.weighted


@pytest.mark.parametrize("kind", ["multilabel", "regression", "repeated"])
def test_a_directory_of_parquet_files_is_one_generation(kind, tmp_path):
    paths = files.pair(tmp_path, kind)
    whole = dynsnap.compare(*paths, **files.SETTINGS[kind], resamples=40)
    folders = []
    for path in paths:
        rows = files.rows_of(kind, 1 if "old" in path.name else 2)
        folder = tmp_path / path.stem
        folder.mkdir()
        for part, some in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
            pq.write_table(pa.Table.from_pylist(some), folder / f"{part}.parquet")
        folders.append(folder)
    found = dynsnap.compare(*folders, **files.SETTINGS[kind], resamples=40)
    for name, one in whole.pairs[0].metrics.items():
        assert found.pairs[0].metrics[name].value == pytest.approx(one.value, nan_ok=True), name


def test_lists_text_and_scores_are_the_same_sets(tmp_path):
    sets = [["a"], ["a", "c"], [], ["b", "c"]]
    lists = pa.table({"id": range(4), "label": sets})
    text = pa.table({"id": range(4), "label": ["a", "c|a", "", '["b", "c"]']})
    scores = pa.table(
        {"id": range(4)}
        | {f"score:{name}": [0.7 if name in each else 0.2 for each in sets] for name in "abc"}
    )
    read = []
    for name, table in {"lists": lists, "text": text, "scores": scores}.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
        read.append(dynsnap.read(tmp_path / f"{name}.parquet", task="multilabel"))
    for each in read:
        assert each.classes == ("a", "b", "c")
        assert each.values.tolist() == [[0, -1], [0, 2], [-1, -1], [1, 2]]


def test_only_the_first_places_of_a_ranking_count(tmp_path):
    pq.write_table(
        pa.table({"id": [1, 2], "ranking": [["x", "y", "z"], ["z"]], "truth": ["y", "x"]}),
        tmp_path / "r.parquet",
    )
    read = dynsnap.read(tmp_path / "r.parquet", task="ranking", k=2)
    assert read.task.texts(read.values, read.classes) == ["x|y", "z"]
    assert read.task.alone(read.values, read.truth)[:, 0].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("truth", "positive", "classes"),
    [
        (["0", "1"], None, ("0", "1")),
        (["True", "False"], None, ("False", "True")),
        (["ham", "spam"], "spam", ("ham", "spam")),
        ([None, None], None, ("negative", "positive")),
    ],
)
def test_a_binary_score_is_two_classes(truth, positive, classes, tmp_path):
    table = pa.table({"id": [1, 2], "score": [0.4, 0.39], "truth": pa.array(truth, pa.string())})
    pq.write_table(table, tmp_path / "b.parquet")
    found = dynsnap.read(tmp_path / "b.parquet", task="binary", threshold=0.4, positive=positive)
    assert found.task is None and found.classes == classes
    assert found.labels.tolist() == [1, 0]
    assert found.scores.tolist() == [[0.6, 0.4], [0.61, 0.39]]


def test_renamed_labels_stay_sets(tmp_path):
    path = files.write(tmp_path / "m.csv", [{"id": 1, "label": "cat|kitten|dog"}])
    found = dynsnap.read(path, task="multilabel", rename={"kitten": "cat"})
    assert found.task.texts(found.values, found.classes) == ["cat|dog"]


def test_thresholds_of_graded_answers_make_them_right_or_wrong(tmp_path):
    rows = [{"id": number, "correct": number / 10} for number in range(11)]
    found = dynsnap.read(files.write(tmp_path / "g.csv", rows), task="graded", threshold=0.7)
    assert found.values[:, 0].tolist() == [0] * 7 + [1] * 4
    assert found.task.whole


def test_frames_dicts_and_files_are_tasks_too(tmp_path):
    pd = pytest.importorskip("pandas")
    old = {"id": [1, 2, 3], "truth": [1.0, 2.0, -3.0], "prediction": [1.0, 2.0, -4.0]}
    new = {"id": [3, 1, 2], "prediction": [-3.0, 1.0, 9.0]}
    files.write(
        tmp_path / "new.csv",
        [dict(zip(new, row, strict=True)) for row in zip(*new.values(), strict=True)],
    )
    for one, other in [(old, new), (pd.DataFrame(old), new), (old, tmp_path / "new.csv")]:
        pair = dynsnap.compare(one, other, task="regression", tolerance=0.5, resamples=40).pairs[0]
        assert vars_of(pair.transitions) == (1, 1, 1, 0)
    wide = {"id": [1, 2], "truth": [1.0, 2.0], "v1": [1.0, 2.0], "v2": [1.0, 5.0]}
    found = dynsnap.compare(
        wide, columns={"labels": ["v1", "v2"]}, task="regression", tolerance=0.5, resamples=40
    )
    assert vars_of(found.pairs[0].transitions) == (1, 0, 1, 0)
    rule = dynsnap.gate.Rule(metric="lost", at_most=0.1, min_count=1)
    assert not dynsnap.gate.check(old, new, rule, task="regression", tolerance=0.5).passed


@pytest.mark.parametrize("held", [False, True])
def test_binary_generations_without_truth_have_the_classes_of_those_with_it(held, tmp_path):
    old = {"id": [1, 2, 3], "score": [0.1, 0.9, 0.8], "truth": ["ham", "spam", None]}
    new = {"id": [1, 2, 3], "score": [0.6, 0.9, 0.8]}
    settings = {"task": "binary", "positive": "spam"}
    given = [dynsnap.read(old, **settings), new] if held else [old, new]
    found = dynsnap.compare(*given, **settings, resamples=40)
    assert found.classes == ("ham", "spam") and found.unlabelled == 1
    assert vars_of(found.pairs[0].transitions) == (1, 0, 1, 0)
