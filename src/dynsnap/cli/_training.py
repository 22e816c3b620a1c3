"""What a page shows of the rounds of a study: how some were trained, and the theorems on them.

Rounds are large. A folder of published results has none, but a small file with what was seen of
them when it was made.
"""

import dataclasses
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from dynsnap import _files, study, theory
from dynsnap._types import AnyArray
from dynsnap._untrusted import mismatch, parse_json, read_arrays
from dynsnap.cli._published import TRAINING
from dynsnap.cli._stored import StoredRounds, truth_of
from dynsnap.ensemble import Method, Round, members, survivors, threshold, wanted
from dynsnap.errors import FileError
from dynsnap.report import Curve
from dynsnap.study import Ensemble, StudyPlan

FILE = "training.npz"
_SIDES = ("lefts", "rights")  # of a theorem, an array each
_CURVES = 4
_AUDITED = 2000  # inputs that the theorems are computed on
_MEMBERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What there is to see of the rounds of a study.

    Attributes:
        curves: The validation accuracy of some rounds, with their snapshots.
        audits: The theorems on the members of two generations, by what they are about.
    """

    curves: Sequence[Curve] = ()
    audits: Mapping[str, theory.Audit] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, plan: StudyPlan) -> Self:
        """From the rounds in a folder or, where there are none, from what was seen of them."""
        shelf = _Rounds(folder, plan)
        curves = tuple(shelf.curves())
        if not curves and (folder / FILE).is_file():
            return cls.read(folder / FILE)
        return cls(curves=curves, audits=dict(shelf.audits(folder)))

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        audits = dict(enumerate(self.audits.items()))
        header = {
            "curves": [dataclasses.asdict(curve) for curve in self.curves],
            "audits": [
                {**_without_sides(audit), "title": title} for title, audit in audits.values()
            ],
        }
        arrays = {
            f"{side}{number}-{place}": getattr(bound, side)
            for number, (_, audit) in audits.items()
            for place, bound in enumerate(audit.bounds)
            for side in _SIDES
        }
        written = np.frombuffer(json.dumps(header).encode(), np.uint8)
        content = io.BytesIO()
        np.savez_compressed(content, header=written, **arrays)
        _files.write_bytes(path, content.getvalue())

    @classmethod
    def read(cls, path: Path) -> Self:
        """What `write` has kept.

        Raises:
            FileError: The file is damaged.
        """
        arrays = read_arrays(path, lambda name: name == "header" or name.startswith(_SIDES))
        try:
            header = parse_json(arrays["header"].astype(np.uint8).tobytes())
            if (problem := mismatch(TRAINING, header)) is not None:
                raise ValueError(problem)
            curves = tuple(_curve(known) for known in header["curves"])
            audits = {
                known.pop("title"): _audit(known, arrays, number)
                for number, known in enumerate(header["audits"])
            }
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{path} is damaged ({error}). Publish the study again.") from error
        return cls(curves=curves, audits=audits)


def _curve(known: dict[str, Any]) -> Curve:
    lists = {name: tuple(known[name]) for name in ("accuracy", "epochs", "snapshots")}
    if len(lists["epochs"]) != len(lists["snapshots"]) or any(
        epoch >= len(lists["accuracy"]) for epoch in lists["epochs"]
    ):
        raise ValueError("a curve has snapshots of epochs that it has not")
    return Curve(**{**known, **lists})


def _without_sides(audit: theory.Audit) -> dict[str, Any]:
    known = dataclasses.asdict(audit)
    known["bounds"] = [{"name": bound.name, "claim": bound.claim} for bound in audit.bounds]
    return known


def _audit(known: dict[str, Any], arrays: Mapping[str, AnyArray], number: int) -> theory.Audit:
    bounds = tuple(
        theory.Bound(name=bound["name"], claim=bound["claim"], lefts=lefts, rights=rights)
        for place, bound in enumerate(known["bounds"])
        for lefts, rights in [_sides(arrays, f"{number}-{place}")]
    )
    within, effects = known["accuracy_bounds"], known["effects"]
    return theory.Audit(
        **{
            **known,
            "bounds": bounds,
            "accuracy_bounds": within and theory.Range(**within),
            "standings": tuple(theory.EnsembleVsMembers(**one) for one in known["standings"]),
            "effects": effects and _effects(effects),
            "notes": tuple(known["notes"]),
        }
    )


def _sides(arrays: Mapping[str, AnyArray], place: str) -> tuple[AnyArray, AnyArray]:
    lefts, rights = (arrays[f"{side}{place}"] for side in _SIDES)
    for side in (lefts, rights):
        sound = side.ndim == 1 and len(side) and side.dtype == np.float64
        if not sound or side.shape != lefts.shape or not np.isfinite(side).all():
            raise ValueError(f"the sides of theorem {place} are not numbers, one for each input")
    return lefts, rights


def _effects(known: dict[str, Any]) -> theory.MemberEffects:
    each = tuple(theory.Effect(**one) for one in known["members"])
    mean = theory.Effect(**known["mean"])
    return theory.MemberEffects(**{**known, "members": each, "mean": mean})


class _Rounds:
    """The stored rounds of a study."""

    def __init__(self, folder: Path, plan: StudyPlan) -> None:
        self._plan = plan
        self._stored = StoredRounds(folder, study.trained_as(plan))

    def of(self, method: Method, generation: int) -> list[Round]:
        """The rounds of an ensemble, as far as they are there."""
        found: list[Round] = []
        while wanted(method.plan, found):
            done = self._get(method, generation, len(found))
            if done is None:
                break
            found.append(done)
        return found

    def firsts(self, method: Method) -> list[Round]:
        """The first round of every generation that a method has rounds of."""
        found: list[Round] = []
        while (done := self._get(method, len(found) + 1, 0)) is not None:
            found.append(done)
        return found

    def _get(self, method: Method, generation: int, index: int) -> Round | None:
        ensemble = Ensemble(method=method, generation=generation, seed=self._plan.seed)
        if ensemble.warm_started:  # from members that only a run knows
            return None
        return self._stored.get(ensemble.spec(index))

    def curves(self) -> Iterator[Curve]:
        """The first round of some ensembles, of the last generation; what they share, once."""
        ensembles = [one for one in self._plan.methods if one.recipe.snapshots > 1]
        asked = [one for one in ensembles if not one.plan.single and one.plan.top is None]
        shown = {(one.recipe, one.plan.beta): one for one in reversed(asked)}  # the first of each
        for method in [one for one in asked if one in shown.values()][:_CURVES]:
            firsts = self.firsts(method)
            if not firsts:
                continue
            done = firsts[-1]
            pruned = len(survivors(done.accuracy, beta=method.plan.beta)) < len(done.accuracy)
            yield Curve(
                method=method.name,
                name=f"first round of generation {len(firsts)}",
                accuracy=tuple(done.curve.tolist()),
                epochs=tuple(done.epochs.tolist()),
                snapshots=tuple(done.accuracy.tolist()),
                threshold=threshold(done.accuracy, beta=method.plan.beta) if pruned else None,
            )

    def audits(self, folder: Path) -> Iterator[tuple[str, theory.Audit]]:
        """The theorems on the last two generations of a DynSnap, or of the largest ensemble."""
        # A rolling ensemble is not made of the rounds of its own generation alone.
        full = [one for one in self._plan.methods if not one.plan.single and one.rolling is None]
        full.sort(key=lambda one: not one.name.startswith("dynsnap"))
        for method in full[:1]:
            count = len(self.firsts(method))
            if count < 2:
                return
            old, new = (members(method.plan, self.of(method, g)) for g in (count - 1, count))
            if len(old) != len(new):
                return
            truth = truth_of(folder, method=method.name, generation=count)
            inputs = old.scores["test"].shape[1]
            step = max(1, -(-inputs // _AUDITED))
            yield (
                f"{method.name}, generation {count - 1} → {count}",
                theory.audit(
                    np.asarray(old.scores["test"][:_MEMBERS, ::step], float),
                    np.asarray(new.scores["test"][:_MEMBERS, ::step], float),
                    truth=None if truth is None or len(truth) != inputs else truth[::step],
                ),
            )
