"""How the tests of commands call them."""

from pathlib import Path

from click.testing import CliRunner

from dynsnap.cli import cli

EXAMPLES = Path(__file__).parents[2] / "examples"
OLD, NEW, TWIN = (str(EXAMPLES / f"{name}.parquet") for name in ("old", "new", "twin"))


def dynsnap(*arguments):
    """Run a command line in this process."""
    result = CliRunner().invoke(cli, [str(part) for part in arguments], prog_name="dynsnap")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments, code):
    """Run a command line that must fail, and hand back its one line on standard error."""
    result = dynsnap(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("dynsnap: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def table(path, rows, head="id,truth,label"):
    """A small CSV file."""
    path.write_text("\n".join([head, *rows]) + "\n")
    return path
