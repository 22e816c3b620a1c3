import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from dynsnap.comparison import compare, flips, write_flips
from dynsnap.errors import FileError, PlanError
from tests.comparison import made


def test_flips_are_exactly_the_lost_and_gained_inputs():
    old, new = made.generations(slices={"half": np.arange(200) % 2}, weights=np.ones(200) * 2)
    table = flips(old, new, names=["old", "new"])
    before, now = old.labels == old.truth, new.labels == new.truth
    rows = np.flatnonzero(before != now)
    assert table["id"].to_pylist() == old.ids[rows].tolist()
    kinds = np.where(now[rows], "gained", "lost").tolist()
    assert table["kind"].to_pylist() == kinds
    assert table["truth"].to_pylist() == old.names_of(old.truth[rows]).tolist()
    assert table["new_label"].to_pylist() == old.names_of(new.labels[rows]).tolist()
    np.testing.assert_array_equal(np.stack(table["old_scores"].to_pylist()), old.scores[rows])
    sure = old.scores[rows, old.labels[rows]]
    np.testing.assert_array_equal(table["old_confidence"].to_numpy(), sure)
    assert table["slice:half"].to_pylist() == [str(row % 2) for row in rows]
    assert set(table["weight"].to_pylist()) == {2.0}
    assert json.loads(table.schema.metadata[b"dynsnap.classes"]) == list(old.classes)

    counts = compare(old, new, resamples=10).pairs[0].transitions
    assert (kinds.count("lost"), kinds.count("gained")) == (counts.lost, counts.gained)


def test_without_truth_every_changed_label_is_a_flip():
    old, new = made.generations(truth=False, scores=False)
    table = flips(old, new)
    assert set(table["kind"].to_pylist()) == {"changed"}
    assert len(table) == np.count_nonzero(old.labels != new.labels)
    assert "truth" not in table.column_names
    assert "old_scores" not in table.column_names


def test_later_generations_are_compared_with_the_one_before(tmp_path):
    parts = made.generations(count=3)
    pairs = {(row["old"], row["new"]) for row in flips(*parts, names=list("abc")).to_pylist()}
    assert pairs == {("a", "b"), ("b", "c")}


@pytest.mark.parametrize("step", [30, 1000])
def test_blocks_are_written_as_the_whole_would_be(tmp_path, step):
    parts = made.generations(count=3)
    path = tmp_path / "flips.parquet"
    blocks = made.Blocks(*parts, step=step, names=["old", "new", "twin"])
    written = write_flips(blocks, path, twin=True)
    expected = flips(*parts[:2], names=["old", "new"])
    found = pq.read_table(path)
    assert written == len(found) == len(expected)
    assert found.to_pylist() == expected.to_pylist()


def test_no_flips_are_a_file_with_columns_and_no_rows(tmp_path):
    one, _ = made.generations()
    path = tmp_path / "flips.parquet"
    assert write_flips(made.Blocks(one, one, step=50), path) == 0
    assert pq.read_table(path).column_names[:4] == ["id", "old", "new", "kind"]


def test_an_unwritable_place_is_one_clear_error_and_an_earlier_file_stays(tmp_path):
    blocks = made.Blocks(*made.generations(), step=50)
    with pytest.raises(FileError, match="Cannot write"):
        write_flips(blocks, tmp_path / "missing" / "flips.parquet")

    class Broken(made.Blocks):
        def __iter__(self):
            yield next(super().__iter__())
            raise FileError("the second file ended early")

    path = tmp_path / "flips.parquet"
    path.write_bytes(b"earlier")
    with pytest.raises(FileError, match="ended early"):
        write_flips(Broken(*made.generations(), step=50), path)
    assert path.read_bytes() == b"earlier"
    assert [each.name for each in tmp_path.iterdir()] == ["flips.parquet"]


def test_a_single_generation_has_no_flips():
    with pytest.raises(PlanError, match="two generations"):
        flips(made.generations(count=1)[0])
