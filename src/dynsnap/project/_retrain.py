"""One retrain: rows, training, scoring, gate, promotion. Every step can be killed and goes on.

Each step leaves one file or folder, put in its place by a rename when it is whole. A step whose
result is there is not done again, so the same command goes on wherever the last one ended:

    retrains/2013-05-06/work/train.*       the rows, cut once
    retrains/2013-05-06/plan.json          what this retrain is about
    retrains/2013-05-06/work/candidate/    the trained model and its predictions
    retrains/2013-05-06/work/deployed/     the predictions of the deployed generation
    registry/generations/0002/             the new generation, for good
    retrains/2013-05-06/measured.json      beside the page, JSON, Markdown and JUnit
    registry/deployed.json                 the pointer, moved if the gate passed
    retrains/2013-05-06/result.json        the end; then `work` goes
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dynsnap import _files, gate, predictions, report
from dynsnap._untrusted import Plain, Table, Text
from dynsnap.errors import DynSnapError, FileError, TrainingError, one_line, some_of
from dynsnap.project import _records as records
from dynsnap.project._comparable import (
    find_deployed,
    least_share,
    refuse_unscored,
    unseen_rows,
)
from dynsnap.project._guarded import guarded, remove
from dynsnap.project._measure import measure_first, measure_pair, with_truth
from dynsnap.project._mlflow_registry import MlflowRegistry
from dynsnap.project._records import Measured, Plan, Result
from dynsnap.project._registry import (
    FILE_NAME,
    FolderRegistry,
    Generation,
    Registry,
    digest_of,
    read_document,
)
from dynsnap.project._rows import (
    EVALUATE,
    TRUTH,
    Cut,
    Rows,
    check_cut,
    class_shares,
    cut,
    period_end,
    read_rows,
)
from dynsnap.project._rows import write_cut as write_rows
from dynsnap.project._settings import REGISTRY, RETRAINS, Project
from dynsnap.project._trainers import make_trainer
from dynsnap.store import FolderLock

Say = Callable[[str], None]
PREDICTIONS = "predictions.parquet"
_TRAINED = Table({"model": Text(longest=100, form=FILE_NAME), "about": Plain()})
STEPS = ("rows", "train", "score", "register", "gate", "decide")


def open_registry(project: Project) -> Registry:
    """The registry that `project.toml` names."""
    if project.registry.kind == "mlflow":
        return MlflowRegistry(project.registry.model, project.registry.uri)
    return FolderRegistry(project.folder / REGISTRY)


@contextmanager
def alone(project: Project) -> Iterator[None]:
    """Hold the right to change a project; refused while another process has it."""
    lock = FolderLock(project.folder)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a retrain would do, without doing it.

    Attributes:
        plan: What it would be about, None where there is nothing to do.
        done: The finished retrain of the same period, where there is one.
        going_on: The steps that an unfinished retrain has behind it.
        deployed: The deployed generation.
        sentences: All of it in words.
    """

    plan: Plan | None
    done: Result | None = None
    going_on: tuple[str, ...] = ()
    deployed: int | None = None
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrain:
    """The loop of a project.

    Args:
        project: What is retrained.
        until: The present, in UTC; rows of periods that are not over by then are not used.
        again: Retrain for a period that has a finished retrain.
        say: Is told of each step.
    """

    project: Project
    until: datetime | None = None
    again: bool = False
    say: Say = field(default=lambda _: None)

    def outlook(self) -> Outlook:
        """What `run` would do. Nothing is written, trained or started."""
        registry = open_registry(self.project)
        pointer = find_deployed(self.project, registry)
        current = None if pointer is None else pointer.generation
        rules = gate.read_rules(self.project.gate.rules)
        found = self._look(read_rows(self.project.data))
        if found is None:
            return Outlook(plan=None, deployed=current, sentences=(self._nothing(),))
        made, rows = found
        done = self._finished(made)
        if done is not None:
            said = (self._already(made, done),)
            return Outlook(plan=None, done=done, deployed=current, sentences=said)
        generation = None if current is None else registry.get(current)
        made, rows = unseen_rows(self.project, made, rows, generation)
        plan = self._plan(made, rows, current, name="")
        folder = self._unfinished(plan)
        steps = () if folder is None else self._steps_behind(folder, registry)
        check_cut(rows, made, self.project.data)
        refuse_unscored(self.project, made, generation, rules)
        trainer = make_trainer(self.project)
        trainer.check(importing=False)
        deployed = (
            "Nothing is deployed yet" if current is None else f"Deployed: generation {current}"
        )
        lines = [
            f"{deployed}. Newest {self.project.data.cadence}: {made.period}.",
            *rows.notes,
            *(_said_skipped(made.skipped, str(self.project.data.cadence))),
            f"Rows: {plan.train:,} to train on, {plan.evaluate:,} held out to score.",
            trainer.sentence(),
            f"Gate: {len(rules)} rules of {self.project.gate.rules}."
            if current is not None
            else "Gate: none, for want of a deployed generation.",
            "If it passes, the new generation is deployed; else the deployed one is kept.",
        ]
        if steps:
            lines.append(f"An unfinished retrain goes on; done so far: {', '.join(steps)}.")
        return Outlook(plan=plan, going_on=steps, deployed=current, sentences=tuple(lines))

    def run(self) -> Result | None:
        """Retrain: train, score, gate, and deploy the new generation or keep the deployed one.

        Returns:
            The result, also of a retrain that was finished before; None where no period has ended.

        Raises:
            FileError: Another retrain is at work, or something cannot be read or written.
            TrainingError: The training failed, or left nothing that can be used.
        """
        if not self.project.folder.is_dir():
            raise FileError(f"There is no folder {self.project.folder}.")
        make_trainer(self.project).check(importing=True)
        with alone(self.project):
            # Once, and first: what is wrong is said before anything is done, and a program that
            # trains does not change the rules that it is held against.
            return self._run(gate.read_rules(self.project.gate.rules))

    def _run(self, rules: Sequence[gate.Rule]) -> Result | None:
        registry = open_registry(self.project)
        self._tidy()
        pointer = find_deployed(self.project, registry)
        current = None if pointer is None else pointer.generation
        found = self._look(read_rows(self.project.data))
        if found is None:
            self.say(self._nothing())
            return None
        made, rows = found
        done = self._finished(made)
        if done is not None:
            self.say(self._already(made, done))
            return done
        generation = None if current is None else registry.get(current)
        made, rows = unseen_rows(self.project, made, rows, generation)
        check_cut(rows, made, self.project.data)
        refuse_unscored(self.project, made, generation, rules)
        folder = self._begun(made, rows, registry, current)
        plan = records.read_plan(folder)
        work = folder / "work"
        for note in (*plan.notes, *_said_skipped(plan.skipped, str(self.project.data.cadence))):
            self.say(note)
        before = None if plan.deployed is None else registry.checked(plan.deployed)
        trained = self._trained(plan, folder, before)
        candidate = work / "candidate"
        if before is not None:
            before = registry.checked(before[0].number)  # a program ran since
            self._scored(plan, folder, before[1] / before[0].model, before[1] / PREDICTIONS)
        self.say("Registering the new generation.")
        generation = registry.register(
            plan.name,
            {
                trained["model"]: candidate / trained["model"],
                PREDICTIONS: candidate / PREDICTIONS,
            },
            model=trained["model"],
            about={
                **trained["about"],
                "period": plan.period,
                "end": made.end,
                "rows": plan.train,
                "id": self.project.data.id,
                "test_size": least_share(
                    None if before is None else before[0], self.project.data.test_size
                ),
            },
        )
        _refuse_other_files(generation, candidate)
        if (folder / records.MEASURED).exists():
            measured = records.read_measured(folder)
        else:
            self.say("Comparing the two generations.")
            try:
                measured = self._measure(folder, plan, generation.number, trained["about"], rules)
            except FileError:
                raise  # with room on the disk, the same command goes on
            except DynSnapError as error:  # going on would end here for ever
                self._give_up(folder, plan, one_line(f"It could not be compared: {error}")[:1000])
                raise
        return self._decide(folder, plan, measured, registry)

    # --- what there is to do ----------------------------------------------------------------

    def _look(self, rows: Rows) -> tuple[Cut, Rows] | None:
        until = self.until or datetime.now(UTC).replace(tzinfo=None)
        finished = [each.plan for each in records.results(self.project.folder) if each.measured]
        last = max(finished, key=self._end, default=None)
        after = None if last is None else self._end(last)
        made = cut(rows, self.project.data, until=until, after=after)
        if made is None:
            return None
        if last is not None and made.end < self._end(last) and not self.again:
            self._refuse_earlier(made, last)
        return made, rows

    def _refuse_earlier(self, made: Cut, last: Plan) -> None:
        """Raise rather than deploy a model of the past because a clock was set back."""
        if self._finished(made) is None:
            raise FileError(
                f"The newest {self.project.data.cadence} with labelled rows is {made.period}, but "
                f"{last.period} was retrained on already: the clock, --until or the data went "
                "back. The deployed generation is unchanged. To retrain on the earlier rows all "
                "the same: --again."
            )

    def _end(self, plan: Plan) -> str:
        """The first day after the rows of a retrain."""
        return plan.end or period_end(plan.period, self.project.data.cadence)

    def _other_cadence(self, plan: Plan) -> bool:
        """Whether a retrain was made before `cadence` changed."""
        return self._end(plan) != period_end(plan.period, self.project.data.cadence)

    def _nothing(self) -> str:
        return (
            f"No {self.project.data.cadence} with labelled rows has ended yet. Nothing to do; the "
            "deployed generation is unchanged."
        )

    def _already(self, made: Cut, done: Result) -> str:
        if self._other_cadence(done.plan):
            return (
                f"`cadence` changed. The rows of the newest {self.project.data.cadence}, "
                f"{made.period}, were in the retrain {done.plan.name}: {done.reason} The first "
                f"{self.project.data.cadence} that ends after {self._end(done.plan)} is the next "
                "to retrain on. To retrain now: --again."
            )
        return (
            f"The newest {self.project.data.cadence} with rows, {done.plan.period}, was retrained "
            f"on already: {done.reason} Retrain again with --again."
        )

    def _finished(self, made: Cut) -> Result | None:
        """The last finished retrain on these rows, unless there is something to do for them.

        After `cadence` changed they may be part of a longer period that was retrained on.
        """
        if self.again or self._unfinished_of(made.period) is not None:
            return None
        found = [
            each
            for each in records.results(self.project.folder)
            if each.decision != "abandoned"
            and (
                self._end(each.plan) == made.end
                or (self._other_cadence(each.plan) and self._end(each.plan) > made.end)
            )
        ]
        own = [each for each in found if not self._other_cadence(each.plan)]
        return next(reversed(own or found), None)

    def _unfinished_of(self, period: str) -> Path | None:
        begun = records.unfinished(self.project.folder)
        return next((folder for folder in begun if folder.name[:10] == period), None)

    def _unfinished(self, plan: Plan) -> Path | None:
        folder = self._unfinished_of(plan.period)
        if folder is None:
            return None
        known = records.read_plan(folder)
        return folder if self._fits(known, plan.deployed) else None

    def _fits(self, plan: Plan, current: int | None) -> bool:
        """Whether an unfinished retrain is still about the deployed generation and these rules."""
        pointer = open_registry(self.project).deployed()
        own = pointer is not None and pointer.made_by(plan.name)
        return plan.project == self._digest() and (plan.deployed == current or own)

    def _digest(self) -> str:
        """A hash of all that the user has decided."""
        rules = self.project.gate.rules.read_bytes()
        return hashlib.sha256(self.project.text.encode() + b"\0" + rules).hexdigest()

    def _plan(self, made: Cut, rows: Rows, current: int | None, *, name: str) -> Plan:
        newest = rows.labels[made.newest]
        return Plan(
            name=name,
            period=made.period,
            end=made.end,
            skipped=made.skipped,
            deployed=current,
            project=self._digest(),
            train=int(made.train.sum()),
            evaluate=int(made.evaluate.sum()),
            newest=int(made.newest.sum()),
            shares=class_shares(newest),
            notes=rows.notes,
        )

    def _steps_behind(self, folder: Path, registry: Registry) -> tuple[str, ...]:
        known = [registry.get(number).retrain for number in registry.numbers()]
        there = {
            "rows": True,
            "train": (folder / "work/candidate").is_dir(),
            "score": (folder / "work/deployed").is_dir(),
            "register": folder.name in known,
            "gate": (folder / records.MEASURED).exists(),
        }
        return tuple(step for step in STEPS if there.get(step))

    # --- the steps --------------------------------------------------------------------------

    def _tidy(self) -> None:
        """Remove what finished retrains, and rows that were never planned for, have left."""
        for folder in records.folders(self.project.folder):
            if (folder / records.RESULT).exists():
                shutil.rmtree(folder / "work", ignore_errors=True)
            elif not (folder / records.PLAN).exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _begun(self, made: Cut, rows: Rows, registry: Registry, current: int | None) -> Path:
        """The folder of the retrain, with its rows and its plan; an unfinished one that fits."""
        for folder in records.unfinished(self.project.folder):
            plan = records.read_plan(folder)
            fits = plan.period == made.period and self._fits(plan, current)
            if fits and not _changed_rows(plan, folder / "work"):
                self.say(f"Going on with the retrain {plan.name}.")
                return folder
            reason = "It was not finished before project.toml, the data or the pointer changed."
            self._give_up(folder, plan, reason)
        place = self.project.folder / RETRAINS
        name, number = made.period, 1
        used = _names_of(registry)  # of retrains whose folders were removed by hand
        while name in used or (place / name).exists():
            number += 1
            name = f"{made.period}-{number}"
        folder = place / name
        (folder / "work").mkdir(parents=True)
        plan = self._plan(made, rows, current, name=name)
        work = folder / "work"
        self.say(
            f"Rows up to the {self.project.data.cadence} of {made.period}: {plan.train:,} to train "
            f"on, {plan.evaluate:,} held out."
        )
        ending = make_trainer(self.project).rows_format
        write_rows(rows, made, self.project.data, work, ending=ending)
        sums = {each.name: digest_of(each)[0] for each in sorted(work.iterdir()) if each.is_file()}
        records.write_plan(folder, replace(plan, files=sums))
        return folder

    def _give_up(self, folder: Path, plan: Plan, reason: str) -> None:
        self.say(f"Giving up the retrain {plan.name}. {reason}")
        result = Result(
            plan=plan,
            measured=None,
            decision="abandoned",
            reason=reason,
            finished=_files.timestamp(),
        )
        records.write_result(folder, result)
        shutil.rmtree(folder / "work", ignore_errors=True)

    def settle(self) -> None:
        """End a retrain that was begun, so that the pointer can be moved by hand.

        What it has deployed already is its result; else it is given up. Going on with it later
        would undo the move.
        """
        registry = open_registry(self.project)
        pointer = registry.deployed()
        for folder in records.unfinished(self.project.folder):
            try:
                plan = records.read_plan(folder)
            except FileError as error:  # it cannot go on, so it is not in the way of a rollback
                self.say(str(error))
                continue
            if pointer is not None and pointer.made_by(plan.name):
                self._decide(folder, plan, records.read_measured(folder), registry)
            else:
                self._give_up(folder, plan, "The pointer was moved by hand before it was finished.")

    def _trained(
        self, plan: Plan, folder: Path, before: tuple[Generation, Path] | None
    ) -> dict[str, Any]:
        work = folder / "work"
        deployed = None if before is None else before[1] / before[0].model
        about = None if before is None else before[0].about
        candidate = work / "candidate"
        if not candidate.exists():
            trainer = make_trainer(self.project)
            trainer.check_rows(work, about)
            self.say(f"Training on {plan.train:,} rows.")
            for later in (work / "deployed", folder / records.MEASURED):
                remove(later)  # not the loop's: this step comes first
            with _whole_folder(candidate) as into:
                with self._guarded(work):
                    made = trainer.train(work, into, deployed)
                _refuse_changed(plan, work)
                _remove_others(into, (made.model, made.predictions))
                kept = into / PREDICTIONS
                found = with_truth(made.predictions, work / TRUTH, "The new model")
                if made.predictions != kept:
                    made.predictions.unlink()
                predictions.write(found, kept)
                facts = {"model": made.model.name, "about": dict(made.about)}
                _files.write_text(into / "trained.json", _files.as_json(facts))
        return read_document(candidate / "trained.json", _TRAINED, "what a training left")

    def _guarded(self, work: Path) -> AbstractContextManager[None]:
        return guarded(self.project.folder, (work / "candidate", work / "deployed"))

    def _scored(self, plan: Plan, folder: Path, model: Path, stored: Path) -> None:
        work = folder / "work"
        if (work / "deployed").exists():
            return
        trainer = make_trainer(self.project)
        self.say("Scoring the same rows with the deployed generation.")
        remove(folder / records.MEASURED)  # not the loop's: this step comes first
        with _whole_folder(work / "deployed") as into:
            kept = into / PREDICTIONS
            if trainer.can_predict:
                asked = work / f"{EVALUATE}.{trainer.rows_format}"
                with self._guarded(work):
                    file = trainer.predict(model, asked, into)
                _remove_others(into, (file,))
                _refuse_changed(plan, work)
                found = with_truth(file, work / TRUTH, "The deployed model")
                if file != kept:
                    file.unlink()
            else:  # only rows that were there when it was trained
                found = with_truth(stored, work / TRUTH, "The deployed model", some=True)
            predictions.write(found, kept)

    def _measure(
        self,
        folder: Path,
        plan: Plan,
        generation: int,
        about: Mapping[str, Any],
        rules: Sequence[gate.Rule],
    ) -> Measured:
        work = folder / "work"
        new = predictions.read(work / "candidate" / PREDICTIONS)
        if plan.deployed is None:
            found = measure_first(new, generation, about, name=self.project.name)
        else:
            old = predictions.read(work / "deployed" / PREDICTIONS)
            numbers = (plan.deployed, generation)
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
            _files.write_text(folder / "report.html", report.to_html(found.document))
            _files.write_text(folder / "report.md", report.to_markdown(found.document))
            _files.write_text(folder / "gate.json", _files.as_json(found.verdict))
            _files.write_text(folder / "junit.xml", report.to_junit(found.document))
        records.write_measured(folder, found.measured)
        return found.measured

    def _decide(self, folder: Path, plan: Plan, measured: Measured, registry: Registry) -> Result:
        number = measured.generation
        deploys = measured.verdict in ("passed", "none")
        if deploys:
            pointer = registry.deployed()
            if pointer is None or not pointer.made_by(plan.name):  # else killed after the move
                registry.deploy(number, way="retrain", why=plan.name)
        if measured.verdict == "none":
            reason = f"Generation {number} is deployed: the first, with nothing to compare it to."
        elif deploys:
            reason = f"The gate passed: generation {number} is deployed."
        else:
            reason = f"The gate {_ENDED[measured.verdict]}: generation {plan.deployed} is kept."
        decision: records.Decision = (
            "first" if measured.verdict == "none" else "promoted" if deploys else "kept"
        )
        result = Result(
            plan=plan,
            measured=measured,
            decision=decision,
            reason=reason,
            finished=_files.timestamp(),
        )
        records.write_result(folder, result)
        shutil.rmtree(folder / "work", ignore_errors=True)
        return result


_ENDED = {"failed": "failed", "unresolved": "is unresolved"}


def _said_skipped(skipped: Sequence[str], cadence: str) -> Iterator[str]:
    if skipped:
        yield f"No labelled rows in the {cadence} of {some_of(skipped)}: skipped."


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


def _refuse_other_files(made: Generation, candidate: Path) -> None:
    """Raise unless the generation is what was scored, also where it was registered before."""
    for name, known in made.files.items():
        if digest_of(candidate / name)[0] != known["sha256"]:
            raise FileError(
                f"Generation {made.number} is not what the retrain {made.retrain} trained: {name} "
                "differs. The deployed generation is unchanged. Remove that generation, or "
                "retrain with --again."
            )


def _names_of(registry: Registry) -> set[str]:
    """The names of all retrains that made a generation."""
    found = set()
    for number in registry.numbers():
        with suppress(FileError):  # a damaged one is not in the way here
            found.add(registry.get(number).retrain)
    return found


def _changed_rows(plan: Plan, work: Path) -> list[str]:
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
    if changed := _changed_rows(plan, work):
        raise TrainingError(
            f"The command changed {some_of(changed)}, which it may only read. The deployed "
            "generation is unchanged."
        )
