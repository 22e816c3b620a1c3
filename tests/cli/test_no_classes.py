"""Columns that hold no class names are refused, by compare and by the gate, before any counting."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynsnap.predictions._text import MOST_CLASSES
from tests.cli.helpers import dynsnap, refused, table

COMMANDS = [("compare",), ("gate", "--at-most", "churn=0.9", "--allow-unknown-labels", "1")]


@pytest.fixture(params=COMMANDS, ids=["compare", "gate"])
def command(request):
    return request.param


def files(folder, column, values):
    """Two CSV files that have these values in one of the two columns of classes."""
    for name in ("old", "new"):
        pairs = [(value, "x") if column == "truth" else ("x", value) for value in values]
        rows = [f"{i},{true},{label}" for i, (true, label) in enumerate(pairs)]
        yield table(folder / f"{name}.csv", rows)


@pytest.mark.parametrize("column", ["label", "truth"])
def test_numbers_that_are_not_whole_are_no_classes(tmp_path, command, column):
    numbers = np.random.default_rng(0).random(400).round(2)  # about 100 different ones
    name, *options = command
    line = refused(name, *files(tmp_path, column, numbers), *options, code=3)
    for part in (f'"{column}"', "400 rows", "not whole", "--label-column", "dynsnap.classes"):
        assert part in line


@pytest.mark.parametrize("column", ["label", "truth"])
def test_as_many_values_as_rows_are_no_classes(tmp_path, command, column):
    name, *options = command
    texts = [f"answer {number}" for number in range(95)] + ["answer 0"] * 5
    line = refused(name, *files(tmp_path, column, texts), *options, code=3)
    for part in (f'"{column}"', "95 different values", "100 rows", "--truth-column"):
        assert part in line


def test_a_few_numbers_that_are_not_whole_are_classes_with_a_note(tmp_path, command):
    name, *options = command
    ratings = ["0.5", "1.0", "1.5"] * 20
    result = dynsnap(name, *files(tmp_path, "label", ratings), *options)
    assert result.exit_code == 0
    assert "not whole" in result.stdout


def test_very_many_classes_are_refused_early_and_the_limit_is_named(tmp_path, command):
    name, *options = command
    labels = [f"c{number}" for number in range(MOST_CLASSES + 1)] * 2
    for file in ("old", "new"):
        columns = {"id": range(len(labels)), "label": labels, "truth": ["c1"] * len(labels)}
        pq.write_table(pa.table(columns), tmp_path / f"{file}.parquet")
    places = (tmp_path / "old.parquet", tmp_path / "new.parquet")
    line = refused(name, *places, *options, code=3)
    for part in ("old.parquet", f"{MOST_CLASSES:,}", '"label"'):
        assert part in line


def test_declared_classes_may_be_as_many_as_rows(tmp_path):
    classes = [f"{number}.5" for number in range(60)]
    for file in ("old", "new"):
        columns = {"id": range(60), "label": classes, "truth": classes}
        metadata = {"dynsnap.classes": str(classes).replace("'", '"')}
        made = pa.table(columns).replace_schema_metadata(metadata)
        pq.write_table(made, tmp_path / f"{file}.parquet")
    places = (tmp_path / "old.parquet", tmp_path / "new.parquet")
    assert dynsnap("gate", *places, "--at-most", "lost=0.1").exit_code == 0


def test_lists_of_scores_are_not_numbered_beyond_the_most_classes(tmp_path):
    # Two billion names would not fit into memory; a file without rows can ask for them.
    kind = pa.list_(pa.float32(), 2_000_000_000)
    made = pa.table({"id": pa.array([], pa.int64()), "scores": pa.array([], kind)})
    for file in ("old", "new"):
        with pa.ipc.new_file(tmp_path / f"{file}.arrow", made.schema) as writer:
            writer.write_table(made)
    line = refused("compare", tmp_path / "old.arrow", tmp_path / "new.arrow", code=3)
    assert f"{MOST_CLASSES:,}" in line
