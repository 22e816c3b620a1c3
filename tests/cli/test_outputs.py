import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynsnap.cli._outputs import claim_outputs, kept_in
from dynsnap.errors import FileError, PlanError
from tests.cli.helpers import NEW, OLD, dynsnap, refused
from tests.messages import naming


def test_an_output_never_overwrites_an_input(tmp_path):
    given = tmp_path / "old.parquet"
    given.touch()
    link = tmp_path / "link.parquet"
    link.symlink_to(given)
    for output in (given, link):
        with pytest.raises(PlanError, match=naming("--flips", "overwrite", "the input")):
            claim_outputs([given], {"--flips": output})


def test_what_a_run_folder_holds_is_not_overwritten_but_reports_are(tmp_path):
    kept = {"study.toml", "table.csv", "about.json", "rounds/1.npz", "predictions/a.parquet"}
    for name in (*kept, "report.html", "size.json", "size.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert {str(path.relative_to(tmp_path)) for path in kept_in(tmp_path)} == kept


def test_two_outputs_never_share_a_place(tmp_path):
    file = tmp_path / "out"
    with pytest.raises(PlanError, match=naming("--markdown", "overwrite", "--json")):
        claim_outputs([], {"--json": file, "--markdown": file})
    with pytest.raises(PlanError, match=naming("--json", "--junit", "standard output")):
        claim_outputs([], {"--json": Path("-"), "--markdown": None, "--junit": Path("-")})


def test_outputs_that_cannot_be_written_are_refused_before_any_work(tmp_path):
    with pytest.raises(FileError, match=naming("--json", "is a directory")):
        claim_outputs([], {"--json": tmp_path})
    with pytest.raises(FileError, match=naming("--json", r"out\.json", "folder")):
        claim_outputs([], {"--json": tmp_path / "absent" / "out.json"})
    if Path("/dev/null").exists():
        with pytest.raises(FileError, match=naming("--json", "/dev/null", "regular file")):
            claim_outputs([], {"--json": Path("/dev/null")})


@pytest.mark.parametrize("name", ["out.xlsx", "out", "-"])
@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["compare", "absent", "absent", "--flips"], "--flips"),
        (["stabilize", "absent", "absent", "-o"], "--output"),
        (["stabilize", "absent", "absent", "-o", "new.csv", "--rescore", 5], "--rescore"),
        (["predict", "absent", "absent", "-o"], "--output"),
        (["export", "absent", "--onnx"], "--onnx"),
    ],
)
def test_a_format_that_cannot_be_written_is_wrong_use_before_anything_is_read(
    arguments, option, name
):
    found = refused(*arguments, name, code=2)
    assert option in found and name in found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no such device")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "printed.txt", "/dev/stderr"])
def test_a_file_that_a_stream_writes_to_is_no_output(tmp_path, name):
    run = [sys.executable, "-m", "dynsnap", "gate", OLD, NEW, "--at-most", "lost=0.5"]
    with (tmp_path / "printed.txt").open("w") as out, (tmp_path / "told.txt").open("w") as err:
        ended = subprocess.run(
            [*run, "--json", name, "--html", "-"],
            cwd=tmp_path,
            stdout=out,
            stderr=err,
            check=False,
            env=os.environ,
        )
    assert ended.returncode == 2
    assert (tmp_path / "printed.txt").read_text() == ""
    told = (tmp_path / "told.txt").read_text()
    assert f"--json {name} is standard " in told
    assert sorted(each.name for each in tmp_path.iterdir()) == ["printed.txt", "told.txt"]


BUILDERS = {
    "compare": "comparison_document",
    "gate": "verdict_document",
    "audit": "audit_document",
}


@pytest.mark.parametrize("command", BUILDERS)
def test_quiet_commands_build_no_report_that_nobody_writes(command, monkeypatch, tmp_path):
    from dynsnap import report

    made = []
    builder = getattr(report, BUILDERS[command])
    monkeypatch.setattr(
        report, BUILDERS[command], lambda *args, **more: made.append(1) or builder(*args, **more)
    )
    files = [OLD, NEW]
    if command == "audit":
        files = [file.replace(".parquet", "-members.npz") for file in files]
    rules = ["--at-most", "lost=0.9"] if command == "gate" else []
    ran = dynsnap(command, *files, *rules, "-q", "--json", tmp_path / "found.json")
    assert ran.exit_code == 0, ran.output
    assert (tmp_path / "found.json").is_file() and not made
    ran = dynsnap(command, *files, *rules, "--markdown", tmp_path / "found.md")
    assert made == [1]  # for the file and the terminal together
