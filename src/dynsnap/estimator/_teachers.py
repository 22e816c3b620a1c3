"""What a single network is retrained from: deployed weights to start from, scores to learn from."""

import hashlib
import os
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Labels
from dynsnap.ensemble import Retraining, TeacherScores
from dynsnap.errors import InputError, PlanError
from dynsnap.estimator._carried import class_places
from dynsnap.estimator._configured import ConfiguredEnsemble
from dynsnap.predictions import Predictions, read
from dynsnap.trainers import Backend


def teacher_scores(
    teacher: Any,
    how: Retraining | None,
    before: ConfiguredEnsemble | None,
    inputs: AnyArray,
    positions: Labels,
    classes: AnyArray,
    method: str,
) -> TeacherScores | None:
    """The scores that a retrain learns from, where they are not those of the deployed network."""
    if how is not None and how.teacher:
        raise PlanError(
            "`teacher` of `retraining` names stored scores, which an estimator does not have. Pass "
            "the teacher itself: retrain(X, y, teacher=...)."
        )
    learns = how is not None and how.distill_weight > 0
    if teacher is not None and not learns:
        raise PlanError(
            f"`teacher` would have no effect on {method}, which learns from labels alone. Use "
            "single-distill or single, with a `distill_weight` above 0."
        )
    if teacher is None and before is not None and how is not None and learns:
        # An ensemble, or a model of another kind, has no weights to start from, but scores.
        other = len(before._found().members) > 1 or before.model is not before._learned_model
        teacher = before if other and not how.warm_start else None
    if teacher is None:
        return None
    names = tuple(map(str, classes.tolist()))
    rows = np.arange(len(inputs))
    if isinstance(teacher, str | os.PathLike):
        name = str(os.fspath(teacher))
        said = read(name)
    elif isinstance(teacher, Predictions):
        name, said = "`teacher`", teacher
    elif hasattr(teacher, "predict_proba") and hasattr(teacher, "classes_"):
        name = f"`teacher` ({type(teacher).__name__})"
        try:
            scores = np.asarray(teacher.predict_proba(inputs))
        except (ValueError, TypeError) as error:
            raise InputError(f"{name} cannot score the training rows: {error}") from error
        labels = tuple(map(str, teacher.classes_.tolist()))
        said = Predictions(ids=rows, classes=labels, scores=scores)
    else:
        raise InputError(
            "`teacher` must be a fitted classifier, predictions with scores, or the path of a "
            f"prediction file, got {type(teacher).__name__}."
        )
    given = TeacherScores.of(said, name=name, ids=rows, classes=names, labels=positions)
    given.check(rows, positions)
    return given


def deployed_network(
    before: ConfiguredEnsemble | None, classes: AnyArray, backend: Backend, estimator: Any
) -> dict[str, bytes]:
    """The network that a single network is retrained from, by its key; none for the first."""
    if before is None:
        return {}
    made = before._found()
    if len(made.members) > 1:
        raise InputError(
            f"{estimator.method} is retrained from a single network, and the last generation is "
            f"an ensemble of {len(made.members)}. Use single-distill, which learns from an "
            "ensemble's scores, distil it first, or start anew with `fit`."
        )
    learner, places = made.learners[made.members[0].learner], class_places(before, classes)
    if len(places) < len(classes):
        learner = backend.widened(
            learner, model=estimator.model, classes=len(classes), places=places
        )
    return {f"{hashlib.sha256(learner).hexdigest()[:32]}/0": learner}
