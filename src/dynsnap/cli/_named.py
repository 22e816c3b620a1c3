"""What `compare` and `gate` read besides predictions: files that are named, and no others.

An option names them, or the table `[tool.dynsnap]` of the pyproject.toml in the current directory.
Nothing is looked for beside the predictions, and a note of the report states what was used.
"""

import functools
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from dynsnap import study
from dynsnap._untrusted import Table, Text, mismatch, read_toml
from dynsnap.cli import _options as options
from dynsnap.cli._looks import (
    claim_inputs,
    inputs_option,
    read_late_families,
    read_learned_from,
    read_looks,
)
from dynsnap.comparison import Comparison
from dynsnap.errors import DynSnapError, PlanError
from dynsnap.report import Looks

PROJECT = Path("pyproject.toml")
_KEYS = Table({}, {"study": Text(), "inputs": Text()})

study_option = click.option(
    "--study",
    "study_folder",
    type=options.FOLDER,
    metavar="DIR",
    help="The run folder or published results of these predictions: take the training rows of each "
    "class, the slices of new classes and the stored inputs from there.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFiles:
    """What a command reads besides predictions.

    Attributes:
        study: The folder of the study that the predictions are of.
        inputs: Where inputs are that a page shows.
        named_by: What named each of the two.
    """

    study: Path | None = None
    inputs: str | None = None
    named_by: dict[str, str] = field(default_factory=dict)
    _used: list[str] = field(default_factory=list)

    def check(self, html_to: Path | None) -> None:
        """Refuse what is not there, before any work is done."""
        if self.study is not None:
            study.check_finished(self.study)
        if self.named_by.get("inputs") == "--inputs" or html_to is not None:
            claim_inputs(self.inputs, html_to)

    def families(self) -> dict[str, dict[str, str]]:
        """For each slice, the value of new classes: see `read_late_families`."""
        found = {} if self.study is None else read_late_families(self.study)
        if found:
            self._use("study", "the slices of new classes")
        return found

    def learned_from(self) -> dict[str, int]:
        """Training rows of each class."""
        found = {} if self.study is None else read_learned_from(self.study)
        if found:
            self._use("study", "the training rows of each class")
        return found

    def looks(self, found: Comparison, *, id_column: str) -> Looks:
        """What the inputs look like that a page shows."""
        if self.inputs is not None:
            looks = read_looks(self.inputs, found, id_column=id_column)
            self._use("inputs", f"{len(looks):,} inputs")
            return looks
        kept = None if self.study is None else self.study / study.INPUTS
        if kept is None or not kept.is_file():
            return {}
        try:
            looks = read_looks(str(kept), found)
        except DynSnapError as error:  # other inputs than these were lost in the study
            self._used.append(f"Stored inputs are left out: {error}")
            return {}
        if looks:
            self._use("study", f"{len(looks):,} stored inputs")
        return looks

    def noted(self, found: Comparison) -> Comparison:
        """The comparison with a note for everything that was used."""
        return replace(found, notes=(*found.notes, *self._used))

    def _use(self, name: str, what: str) -> None:
        self._used.append(
            f"Besides predictions: {what}, from {getattr(self, name)} ({self.named_by[name]})."
        )


def named_files_options(command: options.Command) -> options.Command:
    """The options --study and --inputs; the command gets both as `named`."""

    @functools.wraps(command)
    def parsed(*args: Any, study_folder: Path | None, inputs: str | None, **rest: Any) -> Any:
        found = _project()
        by = dict.fromkeys(found, f"[tool.dynsnap] of {PROJECT}")
        for name, given in (("study", study_folder), ("inputs", inputs)):
            if given is not None:
                found[name], by[name] = str(given), f"--{name}"
        folder = Path(found["study"]) if "study" in found else None
        named = NamedFiles(study=folder, inputs=found.get("inputs"), named_by=by)
        return command(*args, named=named, **rest)

    made: Any = study_option(inputs_option(parsed))
    return made  # type: ignore[no-any-return]


def _project() -> dict[str, str]:
    """The table `[tool.dynsnap]` of the project in the current directory."""
    if not PROJECT.is_file():
        return {}
    try:
        tools = read_toml(PROJECT).get("tool", {})
    except OSError as error:
        raise PlanError(f"Cannot read {PROJECT}: {error.strerror}.") from error
    except ValueError as error:
        raise PlanError(f"{PROJECT} is not valid TOML: {error}.") from error
    found = tools.get("dynsnap", {}) if isinstance(tools, dict) else {}
    if (problem := mismatch(_KEYS, found, "tool.dynsnap")) is not None:
        raise PlanError(f"{PROJECT}: {problem}.")
    return dict(found)
