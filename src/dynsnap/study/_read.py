"""Reading a study file: its settings, and the methods, variants and sweeps that it describes."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dynsnap import _check
from dynsnap._renamed import RenamedWarning
from dynsnap._untrusted import read_toml
from dynsnap.ensemble import (
    COMBINATIONS,
    GIVEN,
    METHOD_KINDS,
    METHODS,
    EnsemblePlan,
    Method,
    Recipe,
    Retraining,
    Rolling,
    Schedule,
    method,
)
from dynsnap.errors import FileError, PlanError, did_you_mean
from dynsnap.gate import Rule
from dynsnap.study._plan import (
    ONE_NETWORK,
    OWN_LOOP,
    DataPlan,
    StudyPlan,
    Sweep,
    check_distinct,
    repeated,
)
from dynsnap.study._toml import TomlTable, with_new_keys

SWEPT = ("members", "beta", "snapshots", "window", "carry_over", "margin")
_SNAPSHOTS = 10  # of a round, where the file does not tell
# What tables of results call a setting that has another name by now.
_IN_TABLES = {"carry_over": "carry"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The settings that the methods of a study share.

    Attributes:
        epochs: Epochs of one training, the paper's T.
        members: The paper's m, or "auto".
        snapshots: The paper's N.
        beta: The paper's β, or "mean" for its β*.
        dropout: Share of units that mcdropout drops.
        rolling: How a rolling ensemble carries members over.
        margin: By how much another class must lead for a deployed label to change.
        cost_ratio: What a lost right answer costs in missed gains, for the Bayesian rule.
        tolerance: With "auto" members: the gain that another round must be expected to bring.
        most_rounds: With "auto" members: the most rounds.
        retraining: Settings in which a single network differs from its method.
        average: Decay of averaged weights, None for the method's own.
        smoothing: Label smoothing, None for the method's own.
        rule: What a cost ratio chooses, "cost" or "margin".
        last_epoch: Whether single networks keep their last epoch, not the best by validation.
    """

    epochs: int = 200
    members: Any = 20
    snapshots: int = _SNAPSHOTS
    beta: Any = "mean"
    dropout: float = 0.1
    rolling: Rolling = field(default_factory=Rolling)
    margin: float = 0.0
    cost_ratio: float = 0.0
    tolerance: float | None = None
    most_rounds: int | None = None
    retraining: Mapping[str, Any] = field(default_factory=dict)
    average: float | None = None
    smoothing: float | None = None
    codistill: float | None = None
    rule: str = "cost"
    last_epoch: bool = False

    def changed_by(self, section: TomlTable) -> "Defaults":
        """The same with the settings of a table of the file."""
        return replace(
            self,
            epochs=section.take("epochs", int, self.epochs),
            members=_members(section, self.members),
            snapshots=section.take("snapshots", int, self.snapshots),
            beta=section.take_any("beta", self.beta),
            dropout=section.take("dropout", float, self.dropout),
            margin=section.take("margin", float, self.margin),
            cost_ratio=section.take("cost_ratio", float, self.cost_ratio),
            tolerance=section.take("tolerance", float, self.tolerance),
            most_rounds=section.take("most_rounds", int, self.most_rounds),
            average=section.take("average", float, self.average),
            smoothing=section.take("smoothing", float, self.smoothing),
            codistill=section.take("codistill", float, self.codistill),
            rule=section.take("rule", str, self.rule),
            last_epoch=section.take("last_epoch", bool, self.last_epoch),
        )

    def rolling_as(self, section: TomlTable) -> "Defaults":
        """The same with the settings of a table about carrying members over."""
        own = self.rolling
        return replace(
            self,
            rolling=Rolling(
                carry_over=section.take("carry_over", float, own.carry_over),
                max_accuracy_gap=section.take("max_accuracy_gap", float, own.max_accuracy_gap),
                finetune_epochs=section.take("finetune_epochs", int, own.finetune_epochs),
                warm_start=section.take("warm_start", bool, own.warm_start),
                agreement=section.take("agreement", float, own.agreement),
                class_aware=section.take("class_aware", bool, own.class_aware),
            ),
        )

    def own_to(self, name: str, section: TomlTable) -> "Defaults":
        """The same with the settings in the table of one method."""
        changed = self.changed_by(section)
        kind = METHOD_KINDS.get(name)
        if kind is not None and kind.retrained:
            changed = replace(changed, retraining=_retraining(section))
        return changed.rolling_as(section) if kind is not None and kind.rolling else changed

    def named(self, name: str) -> Method:
        """One of the paper's six methods, or the rolling one, with these settings."""
        return method(
            name,
            epochs=self.epochs,
            members=self.members,
            snapshots=self.snapshots,
            beta=self.beta,
            dropout=self.dropout,
            rolling=self.rolling,
            margin=self.margin,
            cost_ratio=self.cost_ratio,
            retraining=self.retraining,
            average=self.average,
            smoothing=self.smoothing,
            codistill=self.codistill,
            rule=self.rule,
            last_epoch=self.last_epoch,
            **self.automatic,
        )

    @property
    def automatic(self) -> dict[str, Any]:
        """The settings of an "auto" number of members, where it is one."""
        if self.members != "auto":
            return {}
        return {"tolerance": self.tolerance, "most_rounds": self.most_rounds}


def read_study(path: Path | str, *, stored: bool = False) -> StudyPlan:
    """Read a study file. Old keys are read too, with one warning that names their successors.

    Args:
        path: The file.
        stored: Whether it is the copy of a finished run, which is not edited: old keys in it are
            read without a warning.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "tiny.toml"
        >>> _ = file.write_text('''
        ... [study]
        ... name = "tiny"
        ... [model]
        ... name = "mlp"
        ... ''')
        >>> read_study(file).epochs
        200
    """
    path = Path(path)
    try:
        found = read_toml(path)
    except OSError as error:
        raise FileError(f"Cannot read the study file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise PlanError(f"{path} is not valid TOML: {error}.") from error
    try:
        found, old = with_new_keys(found)
        plan = _study(found, path)
    except PlanError as error:
        raise PlanError(f"{path.name}: {error}") from error
    if old and not stored:
        warnings.warn(f"{path.name}: {', '.join(old)}.", RenamedWarning, stacklevel=2)
    return plan


def _study(found: dict[str, Any], path: Path) -> StudyPlan:
    whole = TomlTable(found, "The file")
    names = ("study", "data", "model", "training", "workers")
    tables = {key: whole.take(key, dict, {}) for key in names}
    methods = TomlTable(whole.take("methods", dict, {}), "[methods]")
    ablations, sweeps = whole.tables("ablation"), whole.tables("sweep")
    variants = whole.tables("variant")
    whole.finish()
    study = TomlTable(tables["study"], "[study]")
    training = TomlTable(tables["training"], "[training]")
    epochs = training.take("epochs", int, 200)
    defaults, chosen, learners, combinations = _methods(methods, epochs)
    data = _data(TomlTable(tables["data"], "[data]"), path.parent)
    changed = tuple(_ablation(section, defaults) for section in ablations)
    if data.source == OWN_LOOP:  # one method, and one network of the same loop beside it
        baseline = next((one for one in changed if one.name == ONE_NETWORK), chosen[0])
    else:
        single = defaults.named("singlebase")
        baseline = next((one for one in chosen if one.name == "singlebase"), single)
    plan = StudyPlan(
        name=study.take("name", str, path.stem),
        seed=study.take("seed", int, 0),
        replicates=study.take("replicates", int, 1),
        ahead=study.take("ahead", int, 0),
        prefixes=study.take("prefixes", bool, False),
        keep=study.take("keep", str, "scores"),  # type: ignore[arg-type]  # checked by the plan
        half=study.take("half_precision", bool, False),
        resamples=study.take("resamples", int, 1000),
        data=data,
        model=tables["model"],
        training=training.rest(),
        epochs=epochs,
        methods=(
            *chosen,
            *changed,
            *(_variant(section, defaults) for section in variants),
        ),
        baseline=baseline,
        learners=learners,
        combinations=combinations,  # type: ignore[arg-type]  # checked by the plan
        sweeps=tuple(_sweep(section, defaults) for section in sweeps),
        workers=tables["workers"],
        teachers=_teachers(found, path.parent),
    )
    study.finish()
    return plan


def _data(section: TomlTable, folder: Path) -> DataPlan:
    source = section.take("source", str, "digits")
    path = section.take("path", str, "")
    subsample = section.take("subsample", float, 1.0)
    growth = section.take("growth", dict, {})
    options = section.rest()
    if isinstance(options.get("test"), str):  # the path of a test set of its own
        options["test"] = _resolve(options["test"], folder)
    return DataPlan(
        source=source,
        path=_resolve(path, folder) if path else None,
        options=options,
        subsample=subsample,
        growth=growth,
    )


def _methods(
    section: TomlTable, epochs: int
) -> tuple[Defaults, tuple[Method, ...], dict[str, int], tuple[str, ...]]:
    """Settings that methods share, the methods, their own replicates, and the combinations."""
    names = section.take_texts("names", METHODS)
    combinations = section.take_texts("combinations", COMBINATIONS)
    snapshots = section.take("snapshots", int, None)
    shared = Defaults(
        epochs=epochs,
        members=_members(section, 20),
        snapshots=_SNAPSHOTS if snapshots is None else snapshots,
        beta=section.take_any("beta", "mean"),
        dropout=section.take("dropout", float, 0.1),
        tolerance=section.take("tolerance", float, None),
        most_rounds=section.take("most_rounds", int, None),
        last_epoch=section.take("last_epoch", bool, False),
    )
    if snapshots is None and 0 < epochs < shared.snapshots:
        raise PlanError(
            f"`snapshots` must be between 1 and the {epochs} epochs of a round. The file has none, "
            f"and {shared.snapshots} is the default: set `snapshots` in [methods]."
        )
    own = {name: section.table(name) for name in METHOD_KINDS}
    section.finish()
    check_distinct("method", list(names))
    often = {
        name: count
        for name in names
        if name in own and (count := own[name].take("replicates", int, None)) is not None
    }
    chosen = tuple(
        (shared.own_to(name, own[name]) if name in own else shared).named(name) for name in names
    )
    for name, table in own.items():
        if name not in names:
            table.rest()  # settings of a method that is left out are ignored
        table.finish()
    return shared, chosen, often, combinations


def _variant(section: TomlTable, defaults: Defaults) -> Method:
    """A method with settings of its own and another name, from a `[[variant]]` table."""
    name = section.take("name", str)
    base = section.take("method", str, "rolling")
    rules = _gate(section.table("gate"))
    every = section.take("every", int, 1)
    settings = defaults.own_to(base, section)
    section.finish()
    return replace(settings.named(base), name=name, gate=rules, every=every)


def _gate(section: TomlTable) -> tuple[tuple[str, str, float], ...]:
    """The rules of a `gate`: a table of metrics for each of `at_least` and `at_most`."""
    found = []
    for bound in ("at_least", "at_most"):
        bounds = section.take(bound, dict, {})
        rules = TomlTable(bounds, f"{section.where[:-1]}.{bound}]")
        for metric in bounds:
            value = rules.take(metric, float)
            Rule(metric=metric, **{bound: value})  # type: ignore[arg-type]  # raises for a wrong one
            found.append((metric, bound, value))
    section.finish()
    return tuple(found)


def _ablation(section: TomlTable, defaults: Defaults) -> Method:
    """DynSnap with a part removed or changed, from an `[[ablation]]` table."""
    name = section.take("name", str)
    schedule = section.take("schedule", str, "cyclic")
    settings = defaults.changed_by(section)
    section.finish()
    return _dynsnap(name, schedule, settings)


def _sweep(section: TomlTable, defaults: Defaults) -> Sweep:
    """One setting varied, from a `[[sweep]]` table.

    A `window` fixes T/N: the epochs then follow from the snapshots. `members = "snapshots"` keeps
    as many members as a round has snapshots, whatever their number.
    """
    over = section.take("over", str)
    if over not in SWEPT:
        raise PlanError(f"{section.where}: `over` cannot be {over!r}. {did_you_mean(over, SWEPT)}")
    values = section.take("values", list)
    in_tables = _IN_TABLES.get(over, over)
    name = section.take("name", str, in_tables)
    combination = section.take("combination", str, "average")
    schedule = {"dynsnap-cyc": "cyclic", "dynsnap-step": "step", "rolling": "cyclic"}
    base = section.take("method", str, "rolling" if over == "carry_over" else "dynsnap-cyc")
    if base not in schedule or (over == "carry_over" and base != "rolling"):
        known = ("rolling",) if over == "carry_over" else schedule
        raise PlanError(
            f"{section.where}: a sweep over `{over}` is not over `method` = {base!r}. "
            f"{did_you_mean(base, known)}"
        )
    settings_of = ["epochs", "members", "snapshots", "beta", "window", "margin", "cost_ratio"]
    settings_of += ["tolerance", "most_rounds"]
    if base == "rolling":
        settings_of += [setting.name for setting in fields(Rolling)]
    fixed = {key: section.take_any(key) for key in settings_of if key != over}
    section.finish()
    points = []
    for value in values:
        label = _label(value)
        settings = _settled({**fixed, over: value}, defaults, base, section.where)
        _check.margin(settings.margin)  # before its label becomes part of a name
        made = _dynsnap(f"{name}={label}", schedule[base], settings)
        if base == "rolling":
            made = replace(made, rolling=settings.rolling)
        points.append((label, made))
    if not points:
        raise PlanError(f"{section.where}: `values` is empty: give the values to try.")
    if (twice := repeated([label for label, _ in points])) is not None:
        raise PlanError(f"{section.where}: {twice} is more than once among the `values`.")
    return Sweep(name=name, over=in_tables, points=tuple(points), combination=combination)  # type: ignore[arg-type]


def _label(value: Any) -> str:
    """A swept value as text, another for each value.

    Example:
        >>> _label(1.0), _label(0.2), _label(0.2000001), _label("mean")
        ('1', '0.2', '0.2000001', 'mean')
    """
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _settled(asked: dict[str, Any], defaults: Defaults, base: str, where: str) -> Defaults:
    known = {key: value for key, value in asked.items() if value is not None}
    window = known.pop("window", None)
    if known.get("members") == "snapshots":
        known["members"] = known.get("snapshots", defaults.snapshots)
    if window is not None and "epochs" in known:
        raise PlanError(f"{where}: give `window` or `epochs`: one follows from the other.")
    section = TomlTable(known, where)
    settled = defaults.own_to(base, section)
    if window is None:
        return settled
    epochs = settled.snapshots * TomlTable({"window": window}, where).take("window", int)
    return replace(settled, epochs=epochs)


def _dynsnap(name: str, schedule: str, settings: Defaults) -> Method:
    return Method(
        name=name,
        recipe=Recipe(
            schedule=Schedule(schedule),  # type: ignore[arg-type]  # checks itself
            epochs=settings.epochs,
            snapshots=settings.snapshots,
            selection="window" if schedule == "cyclic" else "top",
            average=settings.average or 0.0,
            smoothing=settings.smoothing or 0.0,
            codistill=settings.codistill or 0.0,
        ),
        plan=EnsemblePlan(
            size=settings.members,
            snapshots=settings.snapshots,
            beta=settings.beta,
            **settings.automatic,
        ),
        margin=settings.margin,
        cost_ratio=settings.cost_ratio,
    )


def _retraining(section: TomlTable) -> dict[str, Any]:
    """The settings of a single network's retraining that a table has."""
    kinds = {setting.name: type(setting.default) for setting in fields(Retraining)}
    del kinds["cumulative"]  # which makes another method
    found = {name: section.take(name, kind, None) for name, kind in kinds.items()}
    digest = section.take("teacher_sha256", str, None)
    if isinstance(file := found["teacher"], str):
        found["teacher"] = _named_by(file, digest, section.where)
    elif digest is not None:
        raise PlanError(f"{section.where}: `teacher_sha256` is the digest of a `teacher`: name it.")
    return {name: value for name, value in found.items() if value is not None}


def _named_by(file: str, digest: str | None, where: str) -> str:
    """The name of a teacher in the specs of rounds: a file may change, its digest may not."""
    if digest is None or not re.fullmatch("[0-9a-f]{64}", digest):
        raise PlanError(
            f"{where}: the `teacher` {file!r} needs `teacher_sha256`, the 64 hexadecimal digits "
            f"that `sha256sum {file}` prints, got {digest!r}."
        )
    return f"{GIVEN}{digest}"


def _teachers(found: dict[str, Any], folder: Path) -> dict[str, Path]:
    """The files of teachers by their names, from all tables that may set one."""
    methods = found.get("methods", {})
    tables = [one for one in methods.values() if isinstance(one, dict)]
    tables += [one for one in found.get("variant", []) if isinstance(one, dict)]
    return {
        f"{GIVEN}{one['teacher_sha256']}": _resolve(one["teacher"], folder)
        for one in tables
        if isinstance(one.get("teacher"), str) and isinstance(one.get("teacher_sha256"), str)
    }


def _members(section: TomlTable, default: Any) -> Any:
    """How many members: a number, or "auto"."""
    if (found := section.take_any("members", default)) == "auto" or found == default:
        return found
    return TomlTable({"members": found}, section.where).take("members", int)


def _resolve(path: str, folder: Path) -> Path:
    """A path in a study file: relative to that file, `~` for the home folder."""
    return folder / Path(path).expanduser()
