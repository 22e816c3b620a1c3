"""Ensembles that are ready to predict: one file with the members' learners and how they speak."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap._types import Accuracies, Flags, Positions
from dynsnap._untrusted import mismatch, read_pinned
from dynsnap.ensemble import COMBINATIONS, Combination
from dynsnap.errors import FileError, InputError
from dynsnap.store import _container, _manifests, _rounds


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SavedEnsemble:
    """The learners of one ensemble, with all that it takes to predict but the model's code.

    Attributes:
        method: What made it.
        generation: Which D_i it was trained on.
        combination: How its members are combined unless said otherwise.
        classes: Class names, in the order of the scores.
        accuracy: Validation accuracy of each member, the weight of the weighted combinations.
        learners: Serialised learners, in the trainer's own safe format.
        positions: For each member its place among the scores that the learners give: several of
            them where dropout is left on. Each place is that of one member.
        model: The model's name and settings, to build it again.
        about: What else is known: study, environment.
        known: Which classes each member has seen in training, (members, classes); None where all
            have seen the same.
    """

    method: str
    generation: int
    combination: Combination
    classes: tuple[str, ...]
    accuracy: Accuracies
    learners: tuple[bytes, ...]
    positions: Positions
    model: Mapping[str, Any]
    about: Mapping[str, Any] = field(default_factory=dict)
    known: Flags | None = None

    def __post_init__(self) -> None:
        if not len(self.accuracy) == len(self.positions) >= 1:
            raise InputError(
                f"An ensemble needs an accuracy and a position for each member, but has "
                f"{len(self.accuracy)} and {len(self.positions)}."
            )
        members = len(self.positions)
        if sorted(np.asarray(self.positions).tolist()) != list(range(members)):
            raise InputError(
                f"`positions` must hold each of 0 to {members - 1} once, a place for each of the "
                f"{members} members, got {np.asarray(self.positions)}."
            )
        if members * len(self.classes) > _manifests.MOST_SCORES:
            raise InputError(
                f"{members:,} members with {len(self.classes):,} classes are more scores for an "
                "input than an ensemble may give."
            )
        if self.combination not in COMBINATIONS:
            raise InputError(f"There is no combination {self.combination!r}.")
        if self.learned and not (
            len(self.learned) == len(self.learners) == len(self.positions)
            and all(max(columns) < len(self.classes) for columns in self.learned)
        ):
            raise InputError("`learned` must have the classes of each learner.")
        shape = (len(self.positions), len(self.classes))
        if self.known is not None and self.known.shape != shape:
            raise InputError(
                f"`known` must be (members, classes), {shape}, but has the shape "
                f"{self.known.shape}."
            )

    @property
    def learned(self) -> tuple[tuple[int, ...], ...]:
        """Of each learner, the classes that its scores are of; empty where all score all.

        Learners of several generations that an estimator holds know different classes.
        """
        found = self.about.get("estimator", {}).get("learned", [])
        if (problem := mismatch(_manifests.LEARNED, found, "learned")) is not None:
            raise InputError(f"{problem}.")
        return tuple(map(tuple, found))

    @property
    def votes(self) -> Flags | None:
        """Which classes each member votes on, (members, classes); None where all vote on all."""
        if self.known is not None or not self.learned:
            return self.known
        flags = np.zeros((len(self.positions), len(self.classes)), dtype=bool)
        for row, learner in zip(flags, np.asarray(self.positions).tolist(), strict=True):
            row[list(self.learned[learner])] = True
        return flags


def save_ensemble(path: Path | str, ensemble: SavedEnsemble) -> str:
    """Write an ensemble to one file, or leave things as they were.

    Returns:
        The SHA-256 of the file, which `load_ensemble` can insist on.

    Example:
        >>> import tempfile
        >>> made = SavedEnsemble(
        ...     method="singlebase", generation=1, combination="average", classes=("cat", "dog"),
        ...     accuracy=np.array([0.9]), learners=(b"...",), positions=np.array([0]),
        ...     model={"name": "mlp"},
        ... )
        >>> file = Path(tempfile.mkdtemp()) / "cats.ensemble"
        >>> digest = save_ensemble(file, made)
        >>> load_ensemble(file, sha256=digest).classes
        ('cat', 'dog')
    """
    parts = {f"learner.{place:04}.bin": one for place, one in enumerate(ensemble.learners)}
    facts = {
        "kind": "ensemble",
        "format": _rounds.FORMAT,
        "method": ensemble.method,
        "generation": ensemble.generation,
        "combination": ensemble.combination,
        "classes": list(ensemble.classes),
        "accuracy": np.asarray(ensemble.accuracy, float).tolist(),
        "positions": np.asarray(ensemble.positions).tolist(),
        "model": dict(ensemble.model),
        "about": dict(ensemble.about),
        # Left out where there is nothing to say, so that older versions can read the file.
        **({} if ensemble.known is None else {"known": ensemble.known.tolist()}),
    }
    # What could not be read again is refused now, in the form that it would be read in.
    plain = json.loads(json.dumps({**facts, "sha256": {}}))
    if (problem := mismatch(_manifests.ENSEMBLE, plain)) is not None:
        raise InputError(f"The ensemble cannot be saved: {problem}.")
    return _container.write(Path(path), parts, facts)


def load_ensemble(path: Path | str, *, sha256: str | None = None) -> SavedEnsemble:
    """Read an ensemble, after making sure that it is whole and contains only what it may.

    Args:
        path: The file.
        sha256: The digest that the file must have, as `save_ensemble` gives it. Any other file is
            refused before anything in it is read.
    """
    path = Path(path)
    otherwise = f"{path} is not an ensemble. `dynsnap train` writes one."
    content = read_pinned(path, sha256, start=_container.START, otherwise=otherwise)
    container = _container.read_content(path, content)
    facts = container.facts
    if facts.get("kind") != "ensemble":
        raise FileError(otherwise)
    _rounds.check_format(facts, path)
    if (problem := mismatch(_manifests.ENSEMBLE, facts)) is not None:
        raise FileError(f"{path} cannot be read as an ensemble: in its manifest {problem}.")
    try:
        return SavedEnsemble(
            method=facts["method"],
            generation=facts["generation"],
            combination=facts["combination"],
            classes=tuple(facts["classes"]),
            accuracy=np.array(facts["accuracy"], float),
            learners=container.numbered("learner"),
            positions=np.array(facts["positions"], np.intp),
            model=facts["model"],
            about=facts["about"],
            known=np.array(facts["known"], bool) if "known" in facts else None,
        )
    except (ValueError, InputError) as error:
        raise FileError(f"{path} cannot be read as an ensemble: {error}") from error
