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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from dynsnap import _files, gate
from dynsnap.errors import DynSnapError, FileError, one_line, some_of
from dynsnap.project import _records as records
from dynsnap.project._comparable import (
    find_deployed,
    least_share,
    refuse_few,
    refuse_unscored,
    unseen_rows,
)
from dynsnap.project._due import Due
from dynsnap.project._mlflow_registry import MlflowRegistry
from dynsnap.project._records import Measured, Plan, Result
from dynsnap.project._registry import (
    FolderRegistry,
    Registry,
    digest_of,
)
from dynsnap.project._rows import (
    Cut,
    Rows,
    check_cut,
    class_shares,
    read_rows,
)
from dynsnap.project._rows import write_cut as write_rows
from dynsnap.project._settings import REGISTRY, RETRAINS, Project
from dynsnap.project._steps import PREDICTIONS, Say, Steps, changed_rows, refuse_other_files
from dynsnap.project._trainers import make_trainer
from dynsnap.store import FolderLock

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
        rows, due = read_rows(self.project.data), self._due()
        made = due.look(rows)
        if made is None:
            return Outlook(plan=None, deployed=current, sentences=(due.nothing(),))
        done = due.finished(made)
        if done is not None:
            said = (due.already(made, done),)
            return Outlook(plan=None, done=done, deployed=current, sentences=said)
        generation = None if current is None else registry.get(current)
        made, rows = unseen_rows(self.project, made, rows, generation)
        plan = self._plan(made, rows, current, name="")
        folder = self._unfinished(plan)
        steps = () if folder is None else self._steps_behind(folder, registry)
        check_cut(rows, made, self.project.data)
        refuse_unscored(self.project, made, generation, rules)
        if folder is None:
            refuse_few(self.project, made, rows, generation, rules)
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
        rows, due = read_rows(self.project.data), self._due()
        made = due.look(rows)
        if made is None:
            self.say(due.nothing())
            return None
        done = due.finished(made)
        if done is not None:
            self.say(due.already(made, done))
            return done
        generation = None if current is None else registry.get(current)
        made, rows = unseen_rows(self.project, made, rows, generation)
        check_cut(rows, made, self.project.data)
        refuse_unscored(self.project, made, generation, rules)
        folder = self._going_on(made, current)
        if folder is None:  # one that goes on has its rows, and may have its verdict
            refuse_few(self.project, made, rows, generation, rules)
            folder = self._begun(made, rows, registry, current)
        plan = records.read_plan(folder)
        steps = Steps(project=self.project, folder=folder, plan=plan, say=self.say)
        for note in (*plan.notes, *_said_skipped(plan.skipped, str(self.project.data.cadence))):
            self.say(note)
        before = None if plan.deployed is None else registry.checked(plan.deployed)
        trained, candidate = steps.train(before), steps.candidate
        if before is not None:
            before = registry.checked(before[0].number)  # a program ran since
            steps.score(before[1] / before[0].model, before[1] / PREDICTIONS)
        self.say("Registering the new generation.")
        model = trained["model"]
        files = {name: candidate / name for name in (model, PREDICTIONS)}
        generation = registry.register(
            plan.name,
            files,
            model=model,
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
        try:
            refuse_other_files(generation, files, model)
        except FileError as error:  # going on would end here for ever
            self._give_up(folder, plan, one_line(str(error))[:1000])
            raise
        if (folder / records.MEASURED).exists():
            measured = records.read_measured(folder)
        else:
            first = plan.deployed is None
            self.say("Measuring it." if first else "Comparing the two generations.")
            try:
                measured = steps.measure(generation.number, trained["about"], rules)
            except FileError:
                raise  # with room on the disk, the same command goes on
            except DynSnapError as error:  # going on would end here for ever
                self._give_up(folder, plan, one_line(f"It could not be compared: {error}")[:1000])
                raise
        return self._decide(folder, plan, measured, registry)

    def _due(self) -> Due:
        return Due(project=self.project, until=self.until, again=self.again)

    def _unfinished(self, plan: Plan) -> Path | None:
        folder = records.unfinished_of(self.project.folder, plan.period)
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
        there = {
            "rows": True,
            "train": (folder / "work/candidate").is_dir(),
            "score": (folder / "work/deployed").is_dir(),
            "register": folder.name in _names_of(registry),
            "gate": (folder / records.MEASURED).exists(),
        }
        return tuple(step for step in STEPS if there.get(step))

    def _tidy(self) -> None:
        """Remove what finished retrains, and rows that were never planned for, have left."""
        for folder in records.folders(self.project.folder):
            if (folder / records.RESULT).exists():
                shutil.rmtree(folder / "work", ignore_errors=True)
            elif not (folder / records.PLAN).exists():
                shutil.rmtree(folder, ignore_errors=True)

    def _going_on(self, made: Cut, current: int | None) -> Path | None:
        """The folder of an unfinished retrain that fits; others are given up."""
        for folder in records.unfinished(self.project.folder):
            plan = records.read_plan(folder)
            fits = plan.period == made.period and self._fits(plan, current)
            if fits and not changed_rows(plan, folder / "work"):
                self.say(f"Going on with the retrain {plan.name}.")
                return folder
            reason = "It was not finished before project.toml, the data or the pointer changed."
            self._give_up(folder, plan, reason)
        return None

    def _begun(self, made: Cut, rows: Rows, registry: Registry, current: int | None) -> Path:
        """The folder of a retrain that begins, with its rows and its plan."""
        place = self.project.folder / RETRAINS
        name, number = made.period, 1
        used = _names_of(registry)  # of retrains whose folders were removed by hand
        while name in used or os.path.lexists(place / name):  # also a link to nowhere
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


def _names_of(registry: Registry) -> set[str]:
    """The names of all retrains that made a generation."""
    found = set()
    for number in registry.numbers():
        with suppress(FileError):  # a damaged one is not in the way here
            found.add(registry.get(number).retrain)
    return found
