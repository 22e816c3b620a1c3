"""What the commands that train have in common."""

import contextlib
import dataclasses
import json
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import click

from dynsnap import __version__, _files, study
from dynsnap.cli import _options
from dynsnap.cli._engines import EngineChoice
from dynsnap.cli._engines import engine_option as engine_option
from dynsnap.cli._models import make_trainer
from dynsnap.cli._progress import Watch
from dynsnap.cli._stored import RoundsByName
from dynsnap.data import Stream, training_rows
from dynsnap.ensemble import Combination, NoTrainer, Trainer
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.store import RunFolder, SavedEnsemble, environment, save_ensemble
from dynsnap.study import StudyPlan, StudyResult, TrainedEnsemble

budget_option = click.option(
    "--time-budget",
    "budget",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop at a checkpoint after so many seconds (exit code 4); the same command goes on.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
out_option = click.option(
    "--out",
    type=_options.FOLDER,
    metavar="DIR",
    help="Where all that is made goes.  [default: runs/<name of the study>]",
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
    if path.exists():
        return path
    known = shipped()
    if name not in known:
        raise PlanError(
            f"There is no study file {name}, and none of that name comes with dynsnap. "
            f"{did_you_mean(name, known)}"
        )
    return known[name]


def read_plan(
    study_file: str, *, data_path: Path | None, out: Path | None
) -> tuple[Path, StudyPlan, Path]:
    """The study file, what it says with the data where it is, and the folder of its run."""
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
    watch: Watch,
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
    with store, workers as spread:
        if training:  # whoever finds a run that was killed should see what it was
            _files.write_bytes(folder / "study.toml", file.read_bytes())
        own = store if training else None
        by_name = RoundsByName(folder, stream, own=own) if anywhere else None
        result = study.run(
            plan,
            stream=stream,
            trainer=trainer,
            store=by_name or store,
            folder=folder,
            engine=spread,
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
            },
        ),
    )
    return path, digest
