"""The engine that a command line asks for."""

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import click

from dynsnap.ensemble import Engine, serial
from dynsnap.errors import PlanError
from dynsnap.study import Section, StudyPlan

ENGINES = ("serial", "processes")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """An engine by name, before it is started.

    Attributes:
        name: One of `ENGINES`.
        workers: How many workers, None for as many as there is room for.
    """

    name: str = "serial"
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.name == "serial":
            raise PlanError(
                "The serial engine has no workers. Choose another with --engine, or leave out "
                "--workers."
            )

    def opened(self, plan: StudyPlan) -> AbstractContextManager[Engine]:
        """The engine, which ends its workers on leaving."""
        needs = Section(plan.workers, "[workers]")
        rounds = needs.take("rounds", int, 32)
        needs.finish()
        if self.name == "serial":
            return contextlib.nullcontext(serial)
        from dynsnap.engine import ProcessesEngine, Rules

        return ProcessesEngine(self.workers, rules=Rules(together=rounds))


def engine_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of an engine; the command gets them as one `engine`."""

    @click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default="serial",
        show_default=True,
        help="How rounds of training are spread over workers.",
    )
    @click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many workers train at once.  [default: as many as there are cores]",
    )
    @functools.wraps(command)
    def choosing(engine: str, workers: int | None, **rest: Any) -> Any:
        return command(engine=EngineChoice(name=engine, workers=workers), **rest)

    return choosing
