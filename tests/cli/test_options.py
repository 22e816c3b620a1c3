from pathlib import Path

import pytest

from dynsnap.cli._options import (
    claim_outputs,
    files_behind,
    generation_names,
    kept_in,
    parse_renames,
)
from dynsnap.errors import FileError, PlanError


@pytest.mark.parametrize("text", ["cat", "cat=", "=dog", "="])
def test_half_a_rename_is_shown_how(text):
    with pytest.raises(PlanError, match="--rename takes OLD=NEW"):
        parse_renames([text])


def test_a_class_has_one_new_name():
    assert parse_renames(["a=b", "c=b", "a=b"]) == {"a": "b", "c": "b"}
    with pytest.raises(PlanError, match="class 'a' two new names"):
        parse_renames(["a=b", "a=c"])


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


def test_an_output_never_overwrites_an_input(tmp_path):
    given = tmp_path / "old.parquet"
    given.touch()
    link = tmp_path / "link.parquet"
    link.symlink_to(given)
    for output in (given, link):
        with pytest.raises(PlanError, match=r"--flips .* would overwrite the input"):
            claim_outputs([given], {"--flips": output})


def test_an_output_never_overwrites_a_part_of_an_input(tmp_path):
    part = tmp_path / "parts" / "1.parquet"
    part.parent.mkdir()
    part.touch()
    for place in (part.parent, tmp_path / "parts/*.parquet", part.as_uri(), part.parent.as_uri()):
        assert list(files_behind([place])) == [part]
    assert list(files_behind([None, "s3://bucket/old", tmp_path / "empty"])) == [tmp_path / "empty"]


def test_what_a_run_folder_holds_is_not_overwritten_but_reports_are(tmp_path):
    kept = {"study.toml", "table.csv", "about.json", "rounds/1.npz", "predictions/a.parquet"}
    for name in (*kept, "report.html", "size.json", "size.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert {str(path.relative_to(tmp_path)) for path in kept_in(tmp_path)} == kept


def test_two_outputs_never_share_a_place(tmp_path):
    file = tmp_path / "out"
    with pytest.raises(PlanError, match="would overwrite what --json writes"):
        claim_outputs([], {"--json": file, "--markdown": file})
    with pytest.raises(PlanError, match="--json and --junit cannot both write to standard output"):
        claim_outputs([], {"--json": Path("-"), "--markdown": None, "--junit": Path("-")})


def test_outputs_that_cannot_be_written_are_refused_before_any_work(tmp_path):
    with pytest.raises(FileError, match=r"--json .*: it is a directory"):
        claim_outputs([], {"--json": tmp_path})
    with pytest.raises(FileError, match=r"--json .*: its folder does not exist"):
        claim_outputs([], {"--json": tmp_path / "absent" / "out.json"})
    if Path("/dev/null").exists():
        with pytest.raises(FileError, match="not a regular file"):
            claim_outputs([], {"--json": Path("/dev/null")})
