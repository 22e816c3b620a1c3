"""The generations that a command is given, and the files that it may read besides."""

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from dynsnap import comparison, study
from dynsnap.cli import _options as options
from dynsnap.cli._drilldown import (
    claim_inputs,
    excerpts_for,
    inputs_option,
    read_late_families,
    read_learned_from,
)
from dynsnap.comparison import Comparison
from dynsnap.errors import DynSnapError, FileError, PlanError
from dynsnap.predictions import (
    AlignedStream,
    Baseline,
    BaselineStore,
    ColumnNames,
    OneModel,
    Source,
    models_of,
    names_of_files,
    stored,
    stream,
)
from dynsnap.predictions._baselines import baseline_name
from dynsnap.predictions._locate import files_of, locate
from dynsnap.predictions._same import same_files
from dynsnap.report import Excerpts

BASELINES = "baselines"  # the folder of named baselines, unless another is named

study_option = click.option(
    "--study",
    "study_folder",
    type=options.FOLDER,
    metavar="DIR",
    help="The run folder or published results of these predictions: take the training rows of each "
    "class, the slices of new classes and the stored inputs from there.",
)
baselines_option = click.option(
    "--baselines",
    metavar="DIR|URI",
    help=f"Where named baselines are: a folder, or a URI of one ({BASELINES} if left out).",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFiles:
    """What a command reads besides predictions.

    Attributes:
        study: The folder of the study that the predictions are of.
        inputs: Where inputs are that a page shows.
        baselines: Where named baselines are.
        named_by: What named each of them.
    """

    study: Path | None = None
    inputs: str | None = None
    baselines: str = BASELINES
    named_by: dict[str, str] = field(default_factory=dict)
    _used: list[str] = field(default_factory=list)
    _found: dict[str, Baseline] = field(default_factory=dict)

    def located(self, place: Path | str) -> Path | str:
        """The place itself, or the file of the baseline or the MLflow run that it names.

        The file stays until the command ends. Reports say which baseline it is.
        """
        name = baseline_name(place)
        if name is None:
            if str(place).startswith(("models:/", "runs:/")):  # logged to MLflow
                from dynsnap import mlflow

                return click.get_current_context().with_resource(mlflow.fetched(place))
            return place
        store = BaselineStore(self.baselines)
        found, path = click.get_current_context().with_resource(store.checked(name))
        if name not in self._found:
            self._found[name] = found
            self._used.append(found.sentence())
        return path

    @property
    def found_baselines(self) -> tuple[Baseline, ...]:
        """The baselines that were used."""
        return tuple(self._found.values())

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

    def excerpts(self, found: Comparison, *, id_column: str) -> Excerpts:
        """What the inputs look like that a page shows."""
        if self.inputs is not None:
            excerpts = excerpts_for(self.inputs, found, id_column=id_column)
            self._use("inputs", f"{len(excerpts):,} inputs")
            return excerpts
        kept = None if self.study is None else self.study / study.INPUTS
        if kept is None or not kept.is_file():
            return {}
        try:
            excerpts = excerpts_for(str(kept), found)
        except DynSnapError as error:  # other inputs than these were lost in the study
            self._used.append(f"Stored inputs are left out: {error}")
            return {}
        if excerpts:
            self._use("study", f"{len(excerpts):,} stored inputs")
        return excerpts

    def noted(self, found: Comparison) -> Comparison:
        """The comparison with a note for everything that was used."""
        return replace(found, notes=(*found.notes, *self._used))

    def _use(self, name: str, what: str) -> None:
        self._used.append(
            f"Besides predictions: {what}, from {getattr(self, name)} ({self.named_by[name]})."
        )


def named_files_options(command: options.Command) -> options.Command:
    """The options --study, --inputs and --baselines; the command gets them as `named`."""

    @functools.wraps(command)
    def parsed(
        *args: Any,
        study_folder: Path | None,
        inputs: str | None,
        baselines: str | None,
        **rest: Any,
    ) -> Any:
        found = {name: text for name, text in options.project_table().items() if name != "columns"}
        by = dict.fromkeys(found, f"[tool.dynsnap] of {options.PROJECT}")
        for name, given in (
            ("study", study_folder),
            ("inputs", inputs),
            ("baselines", baselines),
        ):
            if given is not None:
                found[name], by[name] = str(given), f"--{name}"
        folder = Path(found["study"]) if "study" in found else None
        named = NamedFiles(
            study=folder,
            inputs=found.get("inputs"),
            baselines=found.get("baselines", BASELINES),
            named_by=by,
        )
        return command(*args, named=named, **rest)

    made: Any = study_option(inputs_option(baselines_option(parsed)))
    return made  # type: ignore[no-any-return]


def project_baselines() -> str | None:
    """Where the project in the current directory keeps its baselines, if it names a place."""
    return options.project_table().get("baselines")


def generation_names(files: Sequence[Source], names: str | None = None) -> tuple[str, ...]:
    """What to call each file's generation: the names given, or what distinguishes the files.

    Example:
        >>> generation_names([Path("monday.csv"), Path("tuesday.csv")], "mon,tue")
        ('mon', 'tue')
    """
    if names is not None:
        given = tuple(name.strip() for name in names.split(","))
        if len(given) != len(files) or not all(given) or len(set(given)) < len(given):
            raise PlanError(
                f"--names takes {len(files)} different names with commas between, one for each "
                f"file, got {names!r}."
            )
        return given
    return names_of_files(
        [file if isinstance(file, OneModel) else Path(str(file)) for file in files]
    )


def generations_in(files: Sequence[Path | str], columns: ColumnNames) -> list[Source]:
    """The generations of some files: each file, or each model of a file that holds several."""
    for place in files:
        refuse_run_folder(Path(place))
    if not columns.many_models:
        return list(files)
    return [model for file in files for model in models_of(file, columns, name=str(file))]


def lined_up(
    files: Sequence[Source],
    names: Sequence[str],
    noise_floor: Path | str | None,
    columns: ColumnNames,
    rename: Mapping[str, str],
    slices: Sequence[str] = (),
    task: options.TaskChoice | None = None,
) -> AlignedStream:
    """The generations of some files, and after them the twin of the first, if there is one."""
    twin = noise_floor is not None
    kinds = None if task is None else task.of(len(files), twin=twin)
    if noise_floor is not None:
        files, names = [*files, noise_floor], [*names, comparison.twin_name(names)]
    return stream(
        files, names=names, columns=columns, rename=rename, slices=slices or None, tasks=kinds
    )


def refuse_run_folder(place: Path) -> None:
    """Raise for a run folder or published results, with the predictions of many ensembles."""
    folder = place.parent if place.name == "predictions" else place
    if not (folder / "table.csv").is_file():
        return
    with contextlib.suppress(StopIteration):
        some = next(iter(stored(folder).values()))
        raise PlanError(
            f"{place} is of a study, with the predictions of many ensembles. Name one of each "
            f"generation, such as {some}; or see all of them with: dynsnap report {folder}"
        )
    raise PlanError(f"{place} is of a study, and holds no predictions. Name files of predictions.")


def files_behind(places: Iterable[Path | str | None]) -> Iterator[Path]:
    """The files of this machine that places of predictions stand for."""
    for place in places:
        if place is None or (isinstance(place, str) and not place.lower().startswith("file:")):
            continue  # another machine's: no output goes there
        with contextlib.suppress(FileError):  # the reader reports it
            yield from (part for part in files_of(locate(place)) if isinstance(part, Path))


def refuse_same_files(places: Mapping[str, Source | None]) -> None:
    """Raise if two places have predictions in common, by whatever path: they change nothing at all.

    Args:
        places: Where predictions are, by what the command line calls them.
    """
    for same in same_files(places.keys(), places.values()):
        raise PlanError(
            f"{same.second} and {same.first} are {same.what}. A model that is held against itself "
            "passes whatever it does. Name the predictions of two models."
        )
