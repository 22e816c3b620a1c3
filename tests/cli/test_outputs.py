import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from dynsnap.cli import cli
from dynsnap.cli._outputs import claim_outputs, kept_in
from dynsnap.errors import PlanError
from tests.cli.helpers import NEW, OLD, dynsnap, refused
from tests.messages import naming
from tests.project.made import make


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


FINISHED = Path(__file__).parents[2] / "results/digits-trees"
# What each command that writes something is called with; an absent input would end with 3.
CALLS = {
    "demo": [],
    "demo weekly": [],
    "run": ["digits"],
    "report": ["absent"],
    "size": ["absent"],
    "publish": ["absent"],
    "train": ["digits", "--method", "singlebase"],
    "predict": ["absent", "absent"],
    "export": ["absent"],
    "distill": ["digits"],
    "compare": ["absent", "absent"],
    "gate": ["absent", "absent", "--at-most", "lost=0.5"],
    "retrain": ["absent"],
    "project init": [],
    "project history": ["absent"],
    "watch": ["absent", "absent", "--at-most", "0.1"],
    "stabilize": ["absent", "absent"],
    "audit": ["absent", "absent"],
}
FILES = {"--html", "--json", "--markdown", "--junit", "--flips", "--output", "--onnx", "--rescore"}
FOLDERS = {"--out", "--svg", "--png"}


def targets():
    """Every option and argument of every command that names what is written."""

    def walk(group, names):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from walk(command, (*names, name))
            yield " ".join((*names, name)), command

    for words, command in walk(cli, ()):
        for one in command.params:
            if not getattr(one, "is_flag", False):
                yield from ((words, name) for name in {*one.opts} & (FILES | FOLDERS))
    yield from (("publish", "target"), ("project init", "folder"))


@pytest.mark.parametrize(("words", "name"), sorted(targets()))
def test_a_target_that_cannot_be_written_is_wrong_use(words, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder.csv").mkdir()
    call = [*words.split(), *CALLS[words]]
    if words in ("retrain", "project history"):
        call[-1] = make(tmp_path / "small")
    elif words in ("report", "size"):
        call[-1] = FINISHED
    ending = ".onnx" if name == "--onnx" else ".csv"
    files = ("folder.csv", f"absent/out{ending}", f"file/out{ending}")
    wrong = files if name in FILES else ("file", "file/deeper")
    for place in wrong:
        more = [place] if not name.startswith("-") else [name, place]
        if name == "--rescore":
            more = ["-o", "new.csv", name, 5, place]
        found = refused(*call, *more, code=2)
        assert place in found
    assert {each.name for each in tmp_path.iterdir()} <= {"file", "folder.csv", "small"}


def test_a_device_is_no_output():
    if Path("/dev/null").exists():
        with pytest.raises(PlanError, match=naming("--json", "/dev/null", "regular file")):
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
