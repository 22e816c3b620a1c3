"""The `dynsnap` command: a table of commands, and the one place where errors become exit codes.

A command's module is imported when the command is called or asked for help, so that
`dynsnap --help` stays quick and no command pays for another one's libraries.
"""

import contextlib
import functools
import importlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from dynsnap import __version__
from dynsnap._renamed import RenamedWarning, now_called
from dynsnap.cli import _signals
from dynsnap.cli._signals import silence, write_line
from dynsnap.errors import DynSnapError, FileError, Interrupted, PlanError, did_you_mean

# Name -> (module:attribute, what it does in one line). Shown in this order.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": (
        "dynsnap.cli._demo:demo",
        "Train the paper's six methods on handwritten digits, and compare them.",
    ),
    "run": ("dynsnap.cli._run:run", "Train and compare the methods of a study file."),
    "report": (
        "dynsnap.cli._report:report_command",
        "Show a finished study: tables here, and everything on one page.",
    ),
    "size": (
        "dynsnap.cli._size:size",
        "Tell how many members are enough, from the rounds of a run.",
    ),
    "publish": (
        "dynsnap.cli._publish:publish",
        "Copy the results of a finished study, small enough to share.",
    ),
    "train": ("dynsnap.cli._train:train", "Train an ensemble that is ready to predict."),
    "predict": ("dynsnap.cli._predict:predict", "Score new inputs with a saved ensemble."),
    "export": (
        "dynsnap.cli._export:export_command",
        "Write an ensemble as one ONNX model, for servers.",
    ),
    "distill": (
        "dynsnap.cli._distill:distill",
        "Make one network of an ensemble, and measure what is left of it.",
    ),
    "runs": ("dynsnap.cli._runs:runs", "List, show or remove the rounds of a run folder."),
    "compare": (
        "dynsnap.cli._compare:compare",
        "Compare the predictions of two or more generations.",
    ),
    "gate": (
        "dynsnap.cli._gate:gate",
        "Let a retrained model through, or not: an exit code for CI.",
    ),
    "baseline": (
        "dynsnap.cli._baseline:baseline",
        "Keep predictions under a name, with a checksum, for later gates.",
    ),
    "retrain": (
        "dynsnap.cli._project:retrain",
        "Retrain a project: train, compare, gate, and deploy or keep.",
    ),
    "project": (
        "dynsnap.cli._project:project_group",
        "Set up a project, see what is deployed, promote, roll back.",
    ),
    "watch": (
        "dynsnap.cli._watch:watch",
        "Follow two models on live traffic, with alarms that may be looked at daily.",
    ),
    "stabilize": (
        "dynsnap.cli._stabilize:stabilize",
        "Keep deployed labels unless another class leads by a margin.",
    ),
    "audit": (
        "dynsnap.cli._audit:audit",
        "Check the paper's theorems on the members of two ensembles.",
    ),
}

# Commands that have another name by now. They work, and no list shows them.
OLD_NAMES = {"stand": "stabilize"}

WRONG_USE = 2
UNUSABLE = 3  # what was named cannot be read, compared or written
GO_ON = 4  # stopped early and cleanly: the same command goes on
PIPE_CLOSED = 141  # as a shell reports SIGPIPE


class CommandGroup(click.Group):
    """A group that loads its commands late and ends every foreseeable error in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if (successor := OLD_NAMES.get(args[0])) is not None:
            write_line(f"dynsnap: {now_called(f'dynsnap {args[0]}', f'dynsnap {successor}')}.")
            args = [successor, *args[1:]]
        if args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]!r}. {did_you_mean(args[0], known)}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _own_endings():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _own_endings(), _old_names_said():
            return super().invoke(ctx)

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; in standalone mode leave with an exit code and never a traceback."""
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        try:
            outcome = super().main(args, prog_name, standalone_mode=False, **extra)
            with _own_endings():
                sys.stdout.flush()
        except PlanError as error:
            _leave(str(error), WRONG_USE)
        except Interrupted as error:
            _leave(str(error), GO_ON)
        except DynSnapError as error:
            _leave(str(error))
        except click.ClickException as error:
            _leave(_usage(error), error.exit_code)
        except _EndedError as error:
            error.leave()
        except click.Abort as error:  # a signal among click's own instructions
            stop = error.__cause__
            _signals.leave(stop if isinstance(stop, KeyboardInterrupt) else KeyboardInterrupt())
        except MemoryError:
            _leave("There is not enough memory for this. Use fewer inputs, or another machine.")
        except RecursionError:
            _leave("What was named is nested too deeply. Name another file.")
        except UnicodeError as error:
            _leave(f"What was named holds text that is not valid Unicode: {error}. Write it again.")
        except OSError as error:
            place = error.filename or "the standard output"
            reason = error.strerror or str(error)
            silence(sys.stdout)
            _leave(f"Cannot use {place}: {reason}. Name a place that exists and has room.")
        # Commands return nothing, so a number is what `ctx.exit` was called with.
        sys.exit(outcome if isinstance(outcome, int) else 0)


class _EndedError(Exception):
    """The program ends, and nothing is wrong with what it was asked for."""

    def __init__(self, leave: Callable[[], NoReturn]) -> None:
        super().__init__()
        self.leave = leave


@contextlib.contextmanager
def _own_endings() -> Iterator[None]:
    """Keep from click what it would end with 1, as if a gate had failed, or take for Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise _EndedError(functools.partial(_signals.leave, stop)) from stop
    except BrokenPipeError as error:  # the reader (head, a pager) has had enough
        raise _EndedError(_leave_pipe) from error
    except EOFError as error:
        raise FileError(f"A file ends too early ({error}). Write it again.") from error


@contextlib.contextmanager
def _old_names_said() -> Iterator[None]:
    """Old names of settings, as one line each, without the place in the code that found them."""
    show = warnings.showwarning

    def said(message: Any, category: Any, *place: Any, **more: Any) -> None:
        if issubclass(category, RenamedWarning):
            write_line(f"dynsnap: {message}")
        else:
            show(message, category, *place, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RenamedWarning)
        warnings.showwarning = said
        yield


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", message="dynsnap %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Measure, and keep, the consistency of classifiers that are retrained.

    Start with two prediction files (columns id, truth, label or score:<class>):

    \b
        dynsnap compare monday.parquet tuesday.parquet
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def start() -> None:
    """Run the command line of this process."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as `>&-` does
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 (for as long as the program runs)
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding lacks is spelled out, not a crash.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    cli.main(prog_name="dynsnap")


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "dynsnap"
    said = error.format_message()
    end = "" if said.endswith((".", "?")) else "."
    return f"{said}{end} See `{where} --help`."


def _leave(message: str, code: int = UNUSABLE) -> NoReturn:
    write_line(f"dynsnap: {message}")
    sys.exit(code)


def _leave_pipe() -> NoReturn:
    silence(sys.stdout)
    sys.exit(PIPE_CLOSED)
