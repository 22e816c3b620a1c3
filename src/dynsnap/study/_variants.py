"""Methods beyond the six: a setting varied, or an idea taken away."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

from dynsnap.ensemble import (
    ROLLING,
    Combination,
    EnsemblePlan,
    Method,
    Recipe,
    Rolling,
    Schedule,
    method,
)
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.study._sections import Section, repeated

SWEPT = ("members", "beta", "snapshots", "window", "carry", "margin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One setting of a method varied, all else equal.

    Attributes:
        over: The setting: "members" (the paper's m), "beta", "snapshots" (N), "window" (T/N),
            "carry" or "margin".
        points: Each value, as text, with the method that it gives.
        combination: How the members are combined.
    """

    name: str
    over: str
    points: tuple[tuple[str, Method], ...]
    combination: Combination


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What the methods of a study have in common.

    Attributes:
        epochs: Epochs of one training, the paper's T.
        members: The paper's m, or "auto".
        snapshots: The paper's N.
        beta: The paper's β, or "mean" for its β*.
        dropout: Share of units that mcdropout drops.
        rolling: How a rolling ensemble carries members over.
        margin: By how much another class must be ahead for a deployed answer to fall.
        tolerance: What another round must gain where members are "auto".
        most_rounds: The most rounds there.
    """

    epochs: int = 200
    members: Any = 20
    snapshots: int = 10
    beta: Any = "mean"
    dropout: float = 0.1
    rolling: Rolling = field(default_factory=Rolling)
    margin: float = 0.0
    tolerance: float | None = None
    most_rounds: int | None = None

    def changed_by(self, section: Section) -> "Defaults":
        """The same with what a table of the file says otherwise."""
        return replace(
            self,
            epochs=section.take("epochs", int, self.epochs),
            members=take_members(section, self.members),
            snapshots=section.take("snapshots", int, self.snapshots),
            beta=section.take_any("beta", self.beta),
            dropout=section.take("dropout", float, self.dropout),
            margin=section.take("margin", float, self.margin),
            tolerance=section.take("tolerance", float, self.tolerance),
            most_rounds=section.take("most_rounds", int, self.most_rounds),
        )

    def rolling_as(self, section: Section) -> "Defaults":
        """The same with what a table of the file says about carrying members over."""
        own = self.rolling
        return replace(
            self,
            rolling=Rolling(
                carry=section.take("carry", float, own.carry),
                lag=section.take("lag", float, own.lag),
                refresh=section.take("refresh", int, own.refresh),
                onward=section.take("onward", bool, own.onward),
                agreement=section.take("agreement", float, own.agreement),
                class_aware=section.take("class_aware", bool, own.class_aware),
            ),
        )

    def own_to(self, name: str, section: Section) -> "Defaults":
        """The same with what the table of one method says otherwise."""
        changed = self.changed_by(section)
        return changed.rolling_as(section) if name in ROLLING else changed

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
            **self.automatic,
        )

    @property
    def automatic(self) -> dict[str, Any]:
        """What decides on the number of members, where nobody else does."""
        if self.members != "auto":
            return {}
        return {"tolerance": self.tolerance, "most_rounds": self.most_rounds}


def read_variant(section: Section, defaults: Defaults) -> Method:
    """A method with settings of its own and another name, from a `[[variant]]` table."""
    name = section.take("name", str)
    base = section.take("method", str, "rolling")
    settings = defaults.own_to(base, section)
    section.finish()
    return replace(settings.named(base), name=name)


def read_ablation(section: Section, defaults: Defaults) -> Method:
    """DynSnap with an idea taken away or changed, from an `[[ablation]]` table."""
    name = section.take("name", str)
    schedule = section.take("schedule", str, "cyclic")
    settings = defaults.changed_by(section)
    section.finish()
    return _dynsnap(name, schedule, settings)


def read_sweep(section: Section, defaults: Defaults) -> Sweep:
    """One setting varied, from a `[[sweep]]` table.

    A `window` fixes T/N: the epochs then follow from the snapshots. `members = "snapshots"` keeps
    as many members as a round has snapshots, whatever their number.
    """
    over = section.take("over", str)
    if over not in SWEPT:
        raise PlanError(f"{section.where}: `over` cannot be {over!r}. {did_you_mean(over, SWEPT)}")
    values = section.take("values", list)
    name = section.take("name", str, over)
    combination = section.take("combination", str, "average")
    schedule = {"dynsnap-cyc": "cyclic", "dynsnap-step": "step", "rolling": "cyclic"}
    base = section.take("method", str, "rolling" if over == "carry" else "dynsnap-cyc")
    if base not in schedule or (over == "carry" and base != "rolling"):
        known = ("rolling",) if over == "carry" else schedule
        raise PlanError(
            f"{section.where}: a sweep over `{over}` is not over `method` = {base!r}. "
            f"{did_you_mean(base, known)}"
        )
    settings_of = ["epochs", "members", "snapshots", "beta", "window", "margin"]
    settings_of += ["tolerance", "most_rounds"]
    if base == "rolling":
        settings_of += [setting.name for setting in fields(Rolling)]
    fixed = {key: section.take_any(key) for key in settings_of if key != over}
    section.finish()
    points = []
    for value in values:
        label = f"{value:g}" if isinstance(value, float) else str(value)
        settings = _settled({**fixed, over: value}, defaults, base, section.where)
        made = _dynsnap(f"{name}={label}", schedule[base], settings)
        if base == "rolling":
            made = replace(made, rolling=settings.rolling)
        points.append((label, made))
    if not points:
        raise PlanError(f"{section.where}: `values` is empty: give the values to try.")
    if (twice := repeated([label for label, _ in points])) is not None:
        raise PlanError(f"{section.where}: {twice} is more than once among the `values`.")
    return Sweep(name=name, over=over, points=tuple(points), combination=combination)  # type: ignore[arg-type]


def _settled(asked: dict[str, Any], defaults: Defaults, base: str, where: str) -> Defaults:
    known = {key: value for key, value in asked.items() if value is not None}
    window = known.pop("window", None)
    if known.get("members") == "snapshots":
        known["members"] = known.get("snapshots", defaults.snapshots)
    if window is not None and "epochs" in known:
        raise PlanError(f"{where}: give `window` or `epochs`: one follows from the other.")
    section = Section(known, where)
    settled = defaults.own_to(base, section)
    if window is None:
        return settled
    epochs = settled.snapshots * Section({"window": window}, where).take("window", int)
    return replace(settled, epochs=epochs)


def _dynsnap(name: str, schedule: str, settings: Defaults) -> Method:
    return Method(
        name=name,
        recipe=Recipe(
            schedule=Schedule(schedule),  # type: ignore[arg-type]  # checks itself
            epochs=settings.epochs,
            snapshots=settings.snapshots,
            selection="window" if schedule == "cyclic" else "top",
        ),
        plan=EnsemblePlan(
            size=settings.members,
            snapshots=settings.snapshots,
            beta=settings.beta,
            **settings.automatic,
        ),
        margin=settings.margin,
    )


def take_members(section: Section, default: Any) -> Any:
    """How many members: a number, or "auto"."""
    if (found := section.take_any("members", default)) == "auto" or found == default:
        return found
    return Section({"members": found}, section.where).take("members", int)
