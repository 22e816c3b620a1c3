"""Counting in parts, by whoever: the same numbers to the last bit."""

import functools
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from dynsnap.comparison import Settings, compare, compare_blocks, to_json
from dynsnap.engine import ProcessesMap
from dynsnap.errors import ComparisonError, FileError
from dynsnap.predictions import Predictions, _spill, read, stream, write
from tests.messages import naming

ROWS = 4_000


def made(seed, *, truth=True):
    rng, common = np.random.default_rng(seed), np.random.default_rng(0)
    true = common.integers(0, 4, ROWS)
    return Predictions(
        ids=np.arange(ROWS),
        classes=list("abcd"),
        scores=rng.dirichlet(np.full(4, 0.4), ROWS),
        truth=true if truth else None,
        weights=common.random(ROWS),
        slices={"part": common.integers(0, 3, ROWS)},
    )


def cut(predictions, folder, *ends):
    folder.mkdir()
    for number, (start, stop) in enumerate(zip((0, *ends), (*ends, len(predictions)), strict=True)):
        write(predictions.slice(start, stop), folder / f"{number}.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generations")
    rng = np.random.default_rng(1)
    write(made(2), folder / "old.parquet")
    write(made(3), folder / "new.parquet")
    cut(made(2), folder / "old", 700, 710, 2500)
    cut(made(3), folder / "new", 1000)
    cut(made(3).take(rng.permutation(ROWS)), folder / "mixed", 100, 3000)
    cut(made(3).take(np.sort(rng.choice(ROWS, 3000, replace=False))), folder / "some", 400)
    cut(made(4).take(rng.permutation(ROWS)[:2000]), folder / "few", 5)
    return folder


def result(folder, *places, parallel=None, **settings):
    files, names = [folder / place for place in places], [f"g{i}" for i in range(len(places))]
    with stream(files, names=names, rows_at_once=300, rows_in_part=1000, **settings) as blocks:
        (found,) = compare_blocks(blocks, Settings(resamples=50), parallel=parallel)
        return as_text(found)


def as_text(comparison):
    return json.dumps(to_json(comparison), sort_keys=True)


def by_post(function, things):
    """Spreads nothing, but sends everything as if to other processes."""
    for thing in things:
        do, part = pickle.loads(pickle.dumps((function, thing)))  # noqa: S301
        yield pickle.loads(pickle.dumps(do(part)))  # noqa: S301


PLACES = [
    ("old.parquet", "new.parquet"),
    ("old", "new"),
    ("old", "mixed"),
    ("mixed", "new"),
    ("old", "some"),
    ("some", "old"),
    ("old", "few", "mixed"),
]


@pytest.mark.slow
@pytest.mark.parametrize("places", PLACES)
def test_parts_that_travel_give_the_same_numbers_to_the_last_bit(places, folder):
    assert result(folder, *places, parallel=by_post) == result(folder, *places)


def test_many_files_give_what_one_file_gives(folder):
    one = result(folder, "old.parquet", "new.parquet")
    assert result(folder, "old", "new") == one
    moved, straight = json.loads(result(folder, "old", "mixed")), json.loads(one)
    assert moved.pop("alignment") != straight.pop("alignment")  # another order
    assert moved == straight


def test_rows_in_memory_are_counted_in_the_same_parts(folder, monkeypatch):
    from dynsnap.comparison import _count

    monkeypatch.setattr(_count, "rows_of_part", lambda classes: 1200)  # as above
    held = compare(read(folder / "old"), read(folder / "new"), names=["g0", "g1"], resamples=50)
    assert as_text(held) == result(folder, "old", "new")


@pytest.mark.slow
def test_processes_give_the_same_numbers_to_the_last_bit(folder):
    with ProcessesMap(2) as parallel:
        for places in (("old", "new"), ("old", "few", "mixed")):
            assert result(folder, *places, parallel=parallel) == result(folder, *places)


def test_who_cannot_reach_temporary_files_leaves_the_part_to_the_driver(folder, monkeypatch):
    def elsewhere(self):
        return self.__dict__ | {"_file": None, "_path": Path("/nowhere")}

    monkeypatch.setattr(_spill.Buckets, "__getstate__", elsewhere)
    assert result(folder, "old", "mixed", parallel=by_post) == result(folder, "old", "mixed")


def test_contradictions_are_counted_over_all_parts(folder, tmp_path):
    other = made(3)
    truth = other.truth.copy()
    truth[[50, 1300, 3999]] = (truth[[50, 1300, 3999]] + 1) % 4
    wrong = Predictions(ids=other.ids, classes=other.classes, scores=other.scores, truth=truth)
    cut(wrong, tmp_path / "wrong", 2000)
    messages = []
    for parallel in (None, by_post):
        with pytest.raises(ComparisonError, match=naming("3", "4,000", r"\"50\"")):
            try:
                result(folder, "old", tmp_path / "wrong", parallel=parallel)
            except ComparisonError as error:
                messages.append(str(error))
                raise
    assert messages[0] == messages[1]


def test_a_bad_row_is_named_as_one_process_names_it(folder, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    cut(made(3), tmp_path / "bad", 2000)
    table = pq.read_table(tmp_path / "bad/1.parquet")
    scores = table.column("score:b").to_numpy().copy()
    scores[1234] = np.nan
    place = table.column_names.index("score:b")
    pq.write_table(table.set_column(place, "score:b", pa.array(scores)), tmp_path / "bad/1.parquet")
    for parallel in (None, by_post):
        with pytest.raises(FileError, match=r"bad/1\.parquet: .* row 1,?234 \(counted from 0\)"):
            result(folder, "old", tmp_path / "bad", parallel=parallel)


def test_what_cannot_travel_is_counted_here(folder, tmp_path, caplog):
    write(made(3), tmp_path / "new.npz")
    refused = functools.partial(pytest.fail, "nothing may be sent")
    found = result(folder, "old", tmp_path / "new.npz", parallel=lambda *_: refused())
    assert json.loads(found)["inputs"] == ROWS
    assert re.search(naming("generations", "Parquet", "one process"), caplog.text)


def test_a_part_is_at_most_so_large(folder):
    with stream([folder / "old", folder / "new"], rows_at_once=300, rows_in_part=1000) as blocks:
        sizes = [sum(len(block[0]) for block in part) for part in blocks.parts()]
    assert sizes == [1200, 1200, 1200, 400]
