from pathlib import Path

import pytest

from dynsnap.cli._outputs import claim_outputs, kept_in
from dynsnap.errors import FileError, PlanError


def test_an_output_never_overwrites_an_input(tmp_path):
    given = tmp_path / "old.parquet"
    given.touch()
    link = tmp_path / "link.parquet"
    link.symlink_to(given)
    for output in (given, link):
        with pytest.raises(PlanError, match=r"--flips .* would overwrite the input"):
            claim_outputs([given], {"--flips": output})


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
