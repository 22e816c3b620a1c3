import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dynsnap import __version__
from dynsnap.cli import cli
from dynsnap.errors import ComparisonError, DynSnapError, FileError, InputError, PlanError
from tests.cli.helpers import NEW, OLD
from tests.messages import naming

DYNSNAP = Path(sys.executable).with_name("dynsnap")
HEAVY = ("torch", "sklearn", "pandas", "numba", "ray", "matplotlib", "duckdb", "plotly")


def failing(error):
    """A command line whose only command raises."""
    group = type(cli)("dynsnap")

    @group.command()
    def work():
        raise error

    return CliRunner().invoke(group, ["work"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PlanError("No such metric."), 2),
        (click.UsageError("No such thing."), 2),
        (InputError("Scores are negative."), 3),
        (FileError("The file is cut short."), 3),
        (ComparisonError("Other truths."), 3),
        (DynSnapError("Anything else."), 3),
        (MemoryError(), 3),
        (OSError(28, "No space left on device"), 3),
        (PermissionError(13, "Permission denied", "out.json"), 3),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(32, "Broken pipe"), 141),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_each_kind_of_error_has_its_exit_code_and_no_traceback(error, code):
    result = failing(error)
    assert result.exit_code == code
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)


def test_an_error_is_one_line_on_stderr_whatever_is_in_it():
    result = failing(FileError("a\nb\x1b[31m\u202e"))
    assert result.stdout == ""
    assert result.stderr == "dynsnap: a\\nb\\x1b[31m\\u202e\n"


def test_a_full_disk_behind_an_output_is_named():
    said = failing(OSError(28, "No space", "out.json")).stderr
    assert re.search(naming(r"out\.json", "No space"), said)


def test_an_error_that_nobody_foresaw_is_not_hidden():
    assert isinstance(failing(ZeroDivisionError("a bug")).exception, ZeroDivisionError)


def test_a_misspelt_command_gets_a_suggestion():
    result = CliRunner().invoke(cli, ["comprae"])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert re.search(naming("'comprae'", '"compare"'), result.stderr)


def test_a_misspelt_option_gets_a_suggestion_and_the_place_for_help():
    result = CliRunner().invoke(cli, ["--verison"], prog_name="dynsnap")
    assert result.exit_code == 2
    assert "'--version'" in result.stderr
    assert "See `dynsnap --help`." in result.stderr


@pytest.mark.parametrize("extra", [["c.csv"], ["--limit"], ["--limit", "-1"]])
def test_every_message_about_wrong_use_ends_as_a_sentence(extra):
    result = CliRunner().invoke(cli, ["gate", "a.csv", "b.csv", *extra], prog_name="dynsnap")
    assert re.search(r"[^.?][.?] See `dynsnap.* --help`\.\n$", result.stderr)


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_help_lists_every_command(arguments):
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    names = cli.list_commands(None)
    assert len(names) >= 3
    for name in names:
        about = re.search(rf"^  {name} +(\w+)", result.stdout, flags=re.MULTILINE)
        assert about is not None, name


@pytest.mark.parametrize("name", cli.list_commands(None))
def test_every_command_explains_itself(name):
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    assert f"dynsnap {name} " in result.stdout  # an example to start from
    assert not re.search(r"\bNone\b", result.stdout)  # a limit or a default that there is not


def test_the_version_is_the_packages():
    result = CliRunner().invoke(cli, ["--version"])
    assert result.stdout == f"dynsnap {__version__}\n"


def loaded_after(code):
    """Which modules a fresh interpreter has loaded after running some code."""
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in done.stdout.splitlines()}


def test_importing_dynsnap_loads_nothing_heavy():
    assert not loaded_after("import dynsnap") & {*HEAVY, "numpy", "pyarrow", "click", "rich"}


def test_using_the_core_loads_nothing_heavy():
    code = "import dynsnap\nfrom dynsnap import metrics, predictions, comparison, gate, theory"
    assert not loaded_after(code) & {*HEAVY, "click"}


def test_a_library_that_is_not_installed_is_named_with_what_brings_it():
    program = "import sys\nsys.modules['sklearn'] = None\nfrom dynsnap import DynSnapClassifier"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    error = done.stderr.splitlines()[-1]
    assert error.startswith("ModuleNotFoundError: ")
    extras = r"pip install 'dynsnap\[torch\]'.*'dynsnap\[boost\]'"
    assert re.search(naming("DynSnapClassifier", "sklearn", extras), error)


def test_help_imports_no_numpy_and_no_command():
    code = "\n".join(
        [
            "from dynsnap.cli import cli",
            "try: cli.main(['--help'], prog_name='dynsnap')",
            "except SystemExit as end: assert end.code == 0, end.code",
        ]
    )
    loaded = loaded_after(code)
    assert "click" in loaded
    assert not loaded & {*HEAVY, "numpy", "pyarrow", "rich"}


def test_the_installed_command_runs_and_fails_in_one_line():
    done = subprocess.run([DYNSNAP, "gaet"], capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(naming("^dynsnap: ", "'gaet'"), done.stderr)
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_device_behind_standard_output_is_one_line_too():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([DYNSNAP, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3
    assert re.search(naming("^dynsnap: ", "standard output"), done.stderr)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("rule", "code"), [pytest.param("lost=0.9", 0, marks=pytest.mark.slow), ("lost=0", 1)]
)
def test_closed_streams_do_not_change_the_answer(rule, code):
    gate = shlex.join([str(DYNSNAP), "gate", OLD, NEW, "--at-most", rule])
    assert subprocess.run(["sh", "-c", f"{gate} >&- 2>&-"]).returncode == code


def test_a_terminal_without_unicode_is_no_crash():
    done = subprocess.run(
        [DYNSNAP, "compare", "→.csv", "b.csv"],
        capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
    )
    assert done.returncode == 3
    assert b"Traceback" not in done.stderr
