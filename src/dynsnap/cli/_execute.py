"""What the commands that train have in common: the engine, the run folder, the progress."""

import contextlib
import dataclasses
import functools
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import click

from dynsnap import __version__, _files, study
from dynsnap.cli import _options
from dynsnap.cli._models import make_trainer
from dynsnap.cli._progress import ProgressMonitor
from dynsnap.cli._stored import RoundsByName
from dynsnap.comparison import ParallelMap
from dynsnap.data import Frame, Stream, training_rows
from dynsnap.ensemble import Combination, Engine, NoTrainer, Trainer, serial
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.store import RunFolder, SavedEnsemble, environment, save_ensemble
from dynsnap.study import StudyPlan, StudyResult, TomlTable, TrainedEnsemble
from dynsnap.trainers import trainer_name

# Settings of a study that no file of an ensemble holds, and what the estimator calls them.
_NOT_IN_FILES = {"adam": "optimizer", "augment": "augment"}

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

    def for_counting(self) -> AbstractContextManager[ParallelMap | None]:
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


budget_option = click.option(
    "--time-budget",
    "budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop at a checkpoint after so many seconds (exit code 4); the same command resumes.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
out_option = click.option(
    "--out",
    type=_options.FILLED,
    metavar="DIR",
    help="The run folder.  [default: runs/<name of the study>]",
)
data_option = click.option(
    "--data",
    "data_path",
    type=_options.FILE,
    metavar="PATH",
    help="Where the data is, instead of the path in the study file.",
)


def shipped() -> dict[str, Path]:
    """The study files that come with dynsnap, by name."""
    folder = Path(str(resources.files("dynsnap") / "studies"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_study(name: str) -> Path:
    """A study file: a path, or the name of one that comes with dynsnap."""
    path = Path(name)
    if (path / "study.toml").is_file():
        raise PlanError(
            f"{name} is the folder of a run, not a study file. Go on with that run by naming "
            f"{path / 'study.toml'} and --out {name}."
        )
    known = shipped()
    if path.is_file() or (path.exists() and name not in known):
        return path
    if name not in known:
        raise PlanError(
            f"There is no study file {name}, and none of that name comes with dynsnap. "
            f"{did_you_mean(name, known)}"
        )
    return known[name]


def read_plan(
    study_file: str, *, data_path: Path | None, out: Path | None
) -> tuple[Path, StudyPlan, Path]:
    """The study file, what it states with the data where it is, and the folder of its run."""
    file = find_study(study_file)
    plan = study.read_study(file)
    if data_path is not None:
        plan = dataclasses.replace(plan, data=dataclasses.replace(plan.data, path=data_path))
    return file, plan, out or Path("runs") / plan.name


def run_folder(plan: StudyPlan, folder: Path, *, weights: bool) -> RunFolder:
    """The run folder of a study."""
    return RunFolder(folder, weights=weights, half=plan.half, training_epochs=plan.epochs)


def same_command() -> str:
    """What to type to do the same again."""
    return shlex.join(["dynsnap", *sys.argv[1:]])


def execute(
    plan: StudyPlan,
    file: Path,
    folder: Path,
    *,
    engine: EngineChoice,
    watch: ProgressMonitor,
    training: bool = True,
    anywhere: bool = False,
) -> StudyResult:
    """Run a study in its folder, and leave there what is needed to understand the results.

    Rounds that another machine trained count where nothing is trained here, or if `anywhere`.
    """
    start = time.monotonic()
    workers = engine.opened(plan)
    anywhere = anywhere or not training
    if anywhere and not (folder / "rounds").is_dir():
        raise FileError(f"{folder} holds no rounds of training. Name the folder that does: --out.")
    stream, notes = study.open_stream(plan.data)
    for note in notes:
        watch.say(note)
    store = run_folder(plan, folder, weights=plan.keep == "weights")
    # Whatever is wrong with the study is said before there is a folder.
    trainer: Trainer = NoTrainer()
    if training:
        trainer = make_trainer(plan, stream, store=store, monitor=watch)
    with store, workers as parallel:
        if training:  # a killed run should show what it was
            _files.write_bytes(folder / "study.toml", file.read_bytes())
        own = store if training else None
        by_name = RoundsByName(folder, stream, own=own) if anywhere else None
        result = study.run(
            plan,
            stream=stream,
            trainer=trainer,
            store=by_name or store,
            folder=folder,
            engine=parallel,
            monitor=watch,
            training=training,
        )
        about: dict[str, Any] = {
            "study": plan.name,
            "dynsnap": __version__,
            "environment": by_name.environment() if by_name else environment(store.device),
            **({"hardware": _hardware(), "engine": engine.name} if training else {}),
            "generations": [len(rows) for rows in stream.generations],
            "training_rows": dict(
                zip(stream.pool.classes, training_rows(stream).T.tolist(), strict=True)
            ),
            "test_inputs": len(stream.evaluation["test"]),
            "replicates": plan.replicates,
            "rounds": result.rounds,
            "rounds_missing": len(result.missing),
            "rounds_trained_last": result.trained,
            "training_seconds": result.seconds,
            "training_inputs": result.inputs,
            **({"inputs_per_second": speed} if (speed := result.inputs_per_second) else {}),
            "wall_seconds_last": time.monotonic() - start,
        }
        text = json.dumps(about, indent=1) + "\n"
        # Lists of numbers on one line: there may be one for each of many classes.
        lines = re.sub(r"\[\s+([\d,\s]+?)\s+\]", lambda m: f"[{' '.join(m[1].split())}]", text)
        with _files.together():
            if not training:
                _files.write_bytes(folder / "study.toml", file.read_bytes())
            _files.write_text(folder / "about.json", lines)
    return result


def _hardware() -> dict[str, Any]:
    """The processor of this machine; nothing that names the machine."""
    found: dict[str, Any] = {"cores": os.cpu_count()}
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        found |= {"processor": names[0]} if names else {}
    return found


def _as_estimator(
    plan: StudyPlan,
    stream: Stream,
    trained: TrainedEnsemble,
    name: str,
    combination: Combination,
    reading: Mapping[str, Any],
) -> dict[str, Any]:
    """What `DynSnapClassifier.load` needs beside the learners."""
    method, inputs = trained.ensemble.method, stream.pool.inputs
    passes, framed = method.recipe.passes, isinstance(inputs, Frame)
    texts = not framed and inputs.dtype.kind in "OU"
    settings = {
        key: plan.training[key]
        for key in ("batch_size", "learning_rate", "prepare", "device", "precision")
        if key in plan.training
    }
    lost = [mine for word, mine in _NOT_IN_FILES.items() if word in plan.training]
    origins = trained.origins or ((0, 0, trained.ensemble.generation),) * len(trained.positions)
    return {
        "backend": trainer_name(plan.model),
        "members": [
            {
                "round": index,
                "epoch": epoch,
                "accuracy": float(accuracy),
                "learner": int(position) // passes,
                "attempt": int(position) % passes,
                "generation": generation,
            }
            for (index, epoch, generation), accuracy, position in zip(
                origins, trained.accuracy, trained.positions, strict=True
            )
        ],
        "passes": passes,
        "rounds": trained.rounds,
        "cost": float(trained.price.kappa),
        "seed": plan.seed,
        "settings": {
            "method": name,
            "members": method.plan.size,
            "snapshots": method.recipe.snapshots,
            "epochs": plan.epochs,
            "combination": combination,
            "random_state": plan.seed,
            **settings,
        },
        "lost": lost,
        "classes": list(stream.pool.classes),
        "class_type": "object",
        "shape": None if texts else list(inputs.shape[1:]),
        "allow_nan": bool(reading.get("allow_missing", False)),
        "columns": list(inputs.columns) if framed else list(reading.get("features", ())),
    }


def save_trained(
    rounds: RunFolder,
    plan: StudyPlan,
    stream: Stream,
    trained: TrainedEnsemble,
    *,
    name: str,
    combination: Combination,
    reading: Mapping[str, Any],
) -> tuple[Path, str]:
    """Save an ensemble of a study in its run folder, ready to predict: its file and its SHA-256.

    `reading` are the options that new inputs are read with, as `data.reading_options` finds them.
    """
    path = rounds.ensemble_path(name, trained.ensemble.generation)
    digest = save_ensemble(
        path,
        SavedEnsemble(
            method=name,
            generation=trained.ensemble.generation,
            combination=combination,
            classes=stream.pool.classes,
            accuracy=trained.accuracy,
            learners=trained.learners,
            positions=trained.positions,
            known=trained.known,
            model=plan.model,
            about={
                "study": plan.name,
                "reading": dict(reading),
                "dynsnap": __version__,
                "environment": environment(rounds.device),
                "cost": trained.price.kappa,
                "seconds": trained.price.seconds,
                "estimator": _as_estimator(plan, stream, trained, name, combination, reading),
            },
        ),
    )
    return path, digest
