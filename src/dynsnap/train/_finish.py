"""From a lane that has ended to a round: its snapshots, scored on every evaluation set."""

from collections.abc import Mapping

import numpy as np

from dynsnap import seeds
from dynsnap.ensemble import Round, snapshot_epochs
from dynsnap.train._context import TrainingContext
from dynsnap.train._predict import Scoring
from dynsnap.train._preparations import to_header
from dynsnap.train._prepare import Encoded
from dynsnap.train._round_state import RoundState
from dynsnap.train._weights import StoredLearner


def finished(
    lane: RoundState,
    context: TrainingContext,
    evaluation: Mapping[str, Encoded],
    *,
    keep_weights: bool,
) -> Round:
    """The round that a lane has become."""
    recipe, blueprint = lane.spec.recipe, context.blueprint
    epochs = snapshot_epochs(recipe, lane.curve)
    learners = [
        StoredLearner(
            weights=lane.kept[epoch],
            prepared=lane.prepared,
            classes=blueprint.classes,
            offers=blueprint.offers,
            prepare=to_header(context.prepare),
            dropout=recipe.dropout,
            passes=recipe.passes,
            noise=seeds.number(lane.spec.seed, lane.spec.canonical(), "passes", epoch),
        )
        for epoch in epochs.tolist()
    ]
    scoring = Scoring(learners, blueprint=blueprint, prepare=context.prepare, device=context.device)
    curve = np.array(lane.curve)
    return Round(
        spec=lane.spec,
        accuracy=np.repeat(curve[epochs], recipe.passes),
        epochs=np.repeat(epochs, recipe.passes),
        scores={name: scoring.of(encoded) for name, encoded in evaluation.items()},
        curve=curve,
        weights=tuple(one.to_bytes() for one in learners) if keep_weights else (),
        seconds=lane.seconds,
    )
