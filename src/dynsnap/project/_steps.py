"""The steps of one retrain: train, score, measure. Each leaves a folder or a file that is whole."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynsnap import _files, gate, predictions, report
from dynsnap._untrusted import Plain, Table, Text
from dynsnap.errors import FileError, TrainingError, some_of
from dynsnap.project import _records as records
from dynsnap.project._guarded import guarded, remove
from dynsnap.project._measure import measure_first, measure_pair, with_truth
from dynsnap.project._records import Measured, Plan
from dynsnap.project._registry import FILE_NAME, Generation, digest_of, read_document
from dynsnap.project._rows import EVALUATE, TRUTH
from dynsnap.project._settings import Project
from dynsnap.project._trainers import make_trainer

Say = Callable[[str], None]
PREDICTIONS = "predictions.parquet"
_TRAINED = Table({"model": Text(longest=100, form=FILE_NAME), "about": Plain()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What is done for a retrain that has rows and a plan. What is there is not done again.

    Args:
        project: What is retrained.
        folder: The folder of the retrain.
        plan: What it is about.
        say: Is told of each step.
    """

    project: Project
    folder: Path
    plan: Plan
    say: Say

    @property
    def work(self) -> Path:
        """The folder of rows and of what is made of them; it goes with the end of the retrain."""
        return self.folder / "work"

    @property
    def candidate(self) -> Path:
        """The folder of the trained model and its predictions."""
        return self.work / "candidate"

    @property
    def deployed(self) -> Path:
        """The folder of the predictions of the deployed generation."""
        return self.work / "deployed"

    def train(self, before: tuple[Generation, Path] | None) -> dict[str, Any]:
        """Train a model, and score the held-out rows with it."""
        deployed = None if before is None else before[1] / before[0].model
        about = None if before is None else before[0].about
        if not self.candidate.exists():
            trainer = make_trainer(self.project)
            trainer.check_rows(self.work, about)
            self.say(f"Training on {self.plan.train:,} rows.")
            for later in (self.deployed, self.folder / records.MEASURED):
                remove(later)  # not the loop's: this step comes first
            with _whole_folder(self.candidate) as into:
                with self._guarded():
                    made = trainer.train(self.work, into, deployed)
                _refuse_changed(self.plan, self.work)
                _remove_others(into, (made.model, made.predictions))
                kept = into / PREDICTIONS
                found = with_truth(made.predictions, self.work / TRUTH, "The new model")
                if made.predictions != kept:
                    made.predictions.unlink()
                predictions.write(found, kept)
                facts = {"model": made.model.name, "about": dict(made.about)}
                _files.write_text(into / "trained.json", _files.as_json(facts))
        return read_document(self.candidate / "trained.json", _TRAINED, "what a training left")

    def _guarded(self) -> AbstractContextManager[None]:
        return guarded(self.project.folder, (self.candidate, self.deployed))

    def score(self, model: Path, stored: Path) -> None:
        """Score the same rows with the deployed generation."""
        if self.deployed.exists():
            return
        trainer = make_trainer(self.project)
        self.say("Scoring the same rows with the deployed generation.")
        remove(self.folder / records.MEASURED)  # not the loop's: this step comes first
        with _whole_folder(self.deployed) as into:
            kept = into / PREDICTIONS
            if trainer.can_predict:
                asked = self.work / f"{EVALUATE}.{trainer.rows_format}"
                with self._guarded():
                    file = trainer.predict(model, asked, into)
                _remove_others(into, (file,))
                _refuse_changed(self.plan, self.work)
                found = with_truth(file, self.work / TRUTH, "The deployed model")
                if file != kept:
                    file.unlink()
            else:  # only rows that were there when it was trained
                found = with_truth(stored, self.work / TRUTH, "The deployed model", some=True)
            predictions.write(found, kept)

    def measure(
        self, generation: int, about: Mapping[str, Any], rules: Sequence[gate.Rule]
    ) -> Measured:
        """Compare the two, hold them against the rules, and write the reports."""
        new = predictions.read(self.candidate / PREDICTIONS)
        if self.plan.deployed is None:
            found = measure_first(new, generation, about, name=self.project.name)
        else:
            old = predictions.read(self.deployed / PREDICTIONS)
            numbers = (self.plan.deployed, generation)
            found = measure_pair(
                old,
                new,
                numbers,
                about,
                rules,
                settings=self.project.gate,
                rescored=make_trainer(self.project).can_predict,
            )
        with _files.together():
            _files.write_text(self.folder / "report.html", report.to_html(found.document))
            _files.write_text(self.folder / "report.md", report.to_markdown(found.document))
            _files.write_text(self.folder / "gate.json", _files.as_json(found.verdict))
            _files.write_text(self.folder / "junit.xml", report.to_junit(found.document))
        records.write_measured(self.folder, found.measured)
        return found.measured


@contextmanager
def _whole_folder(place: Path) -> Iterator[Path]:
    """Hand out a folder of its own, and move it to its place when the block ends well.

    A program that outlives a killed loop writes to the folder of its own attempt and no other.
    """
    aside = place.with_name(f".{place.name}-{os.urandom(8).hex()}")
    try:
        aside.mkdir()
        yield aside
        aside.rename(place)
    except OSError as error:
        raise FileError(f"Cannot write {place}: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _remove_others(folder: Path, kept: Sequence[Path]) -> None:
    """Remove all but some files: what a program leaves beside them is not looked at."""
    for path in folder.iterdir():
        if path not in kept:
            remove(path)


def refuse_other_files(made: Generation, files: Mapping[str, Path], model: str) -> None:
    """Raise unless the generation is what was scored, also where it was registered before.

    A registry may have added files of its own.
    """
    differs = [
        name
        for name, file in files.items()
        if made.files.get(name, {}).get("sha256") != digest_of(file)[0]
    ]
    if made.model not in (model, *differs):
        differs.append(made.model)
    if differs:
        raise FileError(
            f"Generation {made.number} is not what the retrain {made.retrain} trained: "
            f"{some_of(differs)} differs. The deployed generation is unchanged, and that retrain "
            "is given up. The same command begins another."
        )


def changed_rows(plan: Plan, work: Path) -> list[str]:
    """The files with rows that are not what they were when they were cut."""
    found = []
    for name, known in plan.files.items():
        try:
            same = digest_of(work / name)[0] == known
        except OSError:
            same = False
        if not same:
            found.append(name)
    return found


def _refuse_changed(plan: Plan, work: Path) -> None:
    if changed := changed_rows(plan, work):
        raise TrainingError(
            f"The command changed {some_of(changed)}, which it may only read. The deployed "
            "generation is unchanged."
        )
