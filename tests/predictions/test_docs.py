"""docs/predictions.md: its examples run, and its rules hold."""

from pathlib import Path

import pytest

import dynsnap
from dynsnap.comparison import TransitionCounts
from dynsnap.errors import FileError
from dynsnap.predictions import _sources
from tests.documents import blocks

PAGE = (Path(__file__).parents[2] / "docs" / "predictions.md").read_text(encoding="utf-8")


def test_the_python_on_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    assert len(blocks(PAGE, "python")) == 7
    for block in blocks(PAGE, "python"):
        exec(compile(block, "docs/predictions.md", "exec"), names)
    capsys.readouterr()
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert names["found"].inputs == 597
    assert names["verdict"].outcomes[0].inputs == 2
    assert names["pair"].transitions == TransitionCounts(kept=2, gained=0, lost=1, never=0)
    assert len([one for one in names["by_age"].pairs[0].groups if one.kind == "slice"]) == 4
    archive = dynsnap.read("wednesday.npz")
    assert (len(archive.ids), archive.classes) == (3, ("cat", "dog", "eel"))
    assert dynsnap.read("thursday.csv").slices["hour"].values == ("1", "2")
    found = dynsnap.compare("monday.parquet", "wednesday.npz").pairs[0]
    assert found.metrics["consistency"].value == 1


def test_the_file_on_the_page_is_read(tmp_path):
    (example,) = blocks(PAGE, "csv")
    (tmp_path / "file.csv").write_text(example)
    found = dynsnap.read(tmp_path / "file.csv")
    assert found.classes == ("cat", "dog", "eel")
    assert found.slices["region"].values == ("north", "south")


def test_every_ending_is_on_the_page():
    for ending in _sources.FORMATS:
        assert f"`{ending}`" in PAGE


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("7,NA,null", ("NA", "null")),
        ("007,10,2", ("2", "10")),
    ],
)
def test_csv_is_read_as_it_is_written(rows, said, tmp_path):
    (tmp_path / "file.csv").write_text(f"id,truth,label\n{rows}\n")
    found = dynsnap.read(tmp_path / "file.csv")
    assert found.classes == said
    assert str(found.ids[0]) == rows.split(",")[0]


@pytest.mark.parametrize("values", [50, 51])
def test_a_slice_has_at_most_fifty_values(values, tmp_path):
    rows = "\n".join(f"{place},a,{place % values}" for place in range(102))
    (tmp_path / "file.csv").write_text(f"id,label,hour\n{rows}\n1000,a,\n")
    found = dynsnap.read(tmp_path / "file.csv")
    if values == 50:
        assert found.slices["hour"].values[-1] == "(none)"
    else:
        assert not found.slices
        assert '"hour"' in found.notes[0]


@pytest.mark.parametrize("column", ["id", "label", "weight", "score:a"])
def test_a_missing_value_is_an_error_but_in_slices(column, tmp_path):
    row = {"id": "1", "label": "a", "weight": "1", "score:a": "1"} | {column: ""}
    text = ",".join(row) + "\n" + ",".join(row.values()) + "\n2,a,1,1\n"
    (tmp_path / "file.csv").write_text(text)
    with pytest.raises(FileError):
        dynsnap.read(tmp_path / "file.csv")
