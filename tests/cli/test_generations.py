from pathlib import Path

import pytest

from dynsnap.cli._inputs import files_behind, generation_names
from dynsnap.errors import PlanError


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["x/a.csv", "x/b.csv"], ("a", "b")),
        (["x/a.csv", "y/a.csv"], ("x/a", "y/a")),
        (["a.csv", "a.npz"], ("a.csv", "a.npz")),
        (["a.csv", "a.csv"], ("a.csv (1)", "a.csv (2)")),
    ],
)
def test_generations_are_called_by_what_tells_their_files_apart(files, names):
    assert generation_names([Path(file) for file in files]) == names


def test_names_can_be_given():
    assert generation_names([Path("a.csv"), Path("b.csv")], "mon, tue") == ("mon", "tue")


@pytest.mark.parametrize("names", ["a", "a,b,c", "a,", ",", "a,a", ""])
def test_names_that_do_not_fit_the_files_are_refused(names):
    with pytest.raises(PlanError, match="--names takes 2 different names"):
        generation_names([Path("a.csv"), Path("b.csv")], names)


def test_an_output_never_overwrites_a_part_of_an_input(tmp_path):
    part = tmp_path / "parts" / "1.parquet"
    part.parent.mkdir()
    part.touch()
    for place in (part.parent, tmp_path / "parts/*.parquet", part.as_uri(), part.parent.as_uri()):
        assert list(files_behind([place])) == [part]
    assert list(files_behind([None, "s3://bucket/old", tmp_path / "empty"])) == [tmp_path / "empty"]
