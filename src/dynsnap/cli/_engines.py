"""The engine that a command line asks for."""

import contextlib
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import click

from dynsnap.comparison import Spread
from dynsnap.ensemble import Engine, serial
from dynsnap.errors import PlanError
from dynsnap.study import StudyPlan, TomlTable

ENGINES = ("serial", "processes", "ray")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """An engine by name, before it is started.

    Attributes:
        name: One of `ENGINES`.
        workers: How many workers, None for as many as there is room for.
        address: The Ray cluster to join, None for a Ray of one's own.
    """

    name: str = "serial"
    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.name == "serial":
            raise PlanError(
                "The serial engine has no workers. Choose another with --engine, or leave out "
                "--workers."
            )
        if self.address is not None and self.name != "ray":
            raise PlanError("--address is where a Ray cluster is: it goes with --engine ray.")

    def for_counting(self) -> AbstractContextManager[Spread | None]:
        """The same workers for a comparison, None for this process alone."""
        if self.name == "serial":
            return contextlib.nullcontext()
        from dynsnap.engine import ProcessesMap, RayMap

        if self.name == "processes":
            return ProcessesMap(self.workers)
        return RayMap(self.address, workers=self.workers)

    def opened(self, plan: StudyPlan) -> AbstractContextManager[Engine]:
        """The engine, which ends its workers on leaving."""
        needs = TomlTable(plan.workers, "[workers]")
        rounds = needs.take("rounds", int, 32)
        cpus = needs.take("cpus", float, 1.0)
        gpus = needs.take("gpus", float, None)
        needs.finish()
        if self.name == "serial":
            return contextlib.nullcontext(serial)
        from dynsnap.engine import ProcessesEngine, RayEngine, Rules

        rules = Rules(together=rounds)
        if self.name == "processes":
            return ProcessesEngine(self.workers, rules=rules)
        return RayEngine(self.address, workers=self.workers, cpus=cpus, gpus=gpus, rules=rules)


def _option(*, spreads: str, does: str) -> Callable[..., Any]:
    """The options of an engine; the command gets them as one `engine`."""

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default="serial",
            show_default=True,
            help=f"How {spreads} over workers.",
        )
        @click.option(
            "--workers",
            type=click.IntRange(min=1),
            metavar="N",
            help=f"How many workers {does} at once.  [default: as many as there are cores]",
        )
        @click.option(
            "--address",
            metavar="HOST:PORT",
            help="The Ray cluster to join, or `auto`.  [default: a Ray of its own on this machine]",
        )
        @functools.wraps(command)
        def choosing(engine: str, workers: int | None, address: str | None, **rest: Any) -> Any:
            choice = EngineChoice(name=engine, workers=workers, address=address)
            return command(engine=choice, **rest)

        return choosing

    return with_options


engine_option = _option(spreads="rounds of training are spread", does="train")
counting_option = _option(spreads="the counting of Parquet files is spread", does="count")
