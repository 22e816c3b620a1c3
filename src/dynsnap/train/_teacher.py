"""The soft targets of one round: what its teacher, a stored network, predicts for its rows."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dynsnap import seeds
from dynsnap._types import Flags, Labels, Positions
from dynsnap.ensemble import RoundSpec, TeacherScores
from dynsnap.errors import FileError
from dynsnap.train._context import TrainingContext, batches, load
from dynsnap.train._devices import flushing_denormals
from dynsnap.train._distillation import UNKNOWN, RoundTargets
from dynsnap.train._items import forward, plain
from dynsnap.train._weights import StoredLearner

_ROWS_AT_ONCE = 512


def targets_of(
    spec: RoundSpec, rows: Positions, known: Flags, context: TrainingContext
) -> RoundTargets:
    """What a round learns from its teacher.

    Args:
        spec: The round, which has a teacher.
        rows: Rows of the pool that it trains on.
        known: Which classes the teacher was trained on: of the others only labels are learned.
        context: The data, and the stored networks.
    """
    how = spec.distillation
    assert how is not None
    labels = context.labels.cpu().numpy()
    if how.given:
        given = given_scores(spec, rows, labels, context)
        known, taught = given.known, rows[given.known[labels[rows]]]
        said = torch.from_numpy(given.scores[taught]).to(context.device)
    else:
        taught = rows[known[labels[rows]]]
        seed = seeds.number(spec.seed, spec.seed_name(), "views")
        said = teacher_scores(context.stored(spec, how.teacher), taught, context, how.views, seed)
    scores = torch.zeros(len(labels), context.blueprint.classes, device=context.device)
    weights = torch.zeros(len(labels), device=context.device)
    place = torch.from_numpy(taught).to(context.device)
    # Its scores of classes that it was never trained on mean nothing.
    said = said * torch.from_numpy(known).to(context.device)
    if how.temperature < 1:  # or powers of all scores of a row might round to 0
        said = said / said.amax(dim=1, keepdim=True)
    soft = said ** (1 / how.temperature)
    scores[place] = soft / soft.sum(dim=1, keepdim=True)
    if how.classes == "known":
        scores[:, torch.from_numpy(~known).to(context.device)] = UNKNOWN
    weights[place] = how.weight
    if how.rows == "right":
        weights[place] *= said.argmax(dim=1) == context.labels[place]
    return RoundTargets(
        scores=scores,
        weights=weights,
        temperature=how.temperature,
        wrong=how.rows == "wrong",
        everywhere=how.rows == "all" and len(taught) == len(rows),
    )


def given_scores(
    spec: RoundSpec, rows: Positions, labels: Labels, context: TrainingContext
) -> TeacherScores:
    """The scores that a round's spec names by their digest; raise where rows lack them."""
    assert spec.distillation is not None and context.parents is not None
    given = TeacherScores.from_bytes(context.parents(spec.distillation.teacher))
    if given.scores.shape != (len(labels), context.blueprint.classes):
        raise FileError(
            f"The teacher of {spec} scores {given.scores.shape[0]} rows for "
            f"{given.scores.shape[1]} classes, and there are {len(labels)} rows of "
            f"{context.blueprint.classes} classes."
        )
    given.check(rows, labels)
    return given


@torch.no_grad()
def teacher_scores(
    teacher: StoredLearner, rows: Positions, context: TrainingContext, views: int, seed: int
) -> Tensor:
    """Scores of a stored network for rows of the pool, (rows, classes).

    Where training augments its inputs, they are averaged over so many augmented views: a student
    is shown augmented inputs too.
    """
    module = stored_module(teacher, context)
    bound = context.bind(teacher.prepared)
    generator = torch.Generator(context.device).manual_seed(seed)
    parts = [torch.zeros(0, context.blueprint.classes, device=context.device)]
    with flushing_denormals():
        for some in batches(rows, _ROWS_AT_ONCE, context.device):
            inputs = context.prepare.apply(plain(context.inputs).take(some), bound)
            parts.append(_averaged(module, inputs, context, views, generator))
    return torch.cat(parts)


def stored_module(learner: StoredLearner, context: TrainingContext) -> nn.Module:
    """A stored network on the device, ready to score inputs; raise if it is of another task."""
    blueprint = context.blueprint
    if learner.classes != blueprint.classes:
        raise FileError(
            f"The deployed network scores {learner.classes} classes, and there are "
            f"{blueprint.classes} now: it cannot teach. Train the first generation anew."
        )
    if dict(learner.offers) != dict(blueprint.offers):
        raise FileError(
            f"The deployed network was trained on inputs of another kind ({_words(learner.offers)})"
            f" than there are now ({_words(blueprint.offers)}): it cannot teach."
        )
    module = blueprint.build(dropout=learner.dropout)
    load(module, learner.weights)
    return module.to(context.device).eval()


def _averaged(
    module: nn.Module,
    inputs: Tensor,
    context: TrainingContext,
    views: int,
    generator: torch.Generator,
) -> Tensor:
    if context.augment is None:
        return forward(module, inputs).float().softmax(dim=1)  # type: ignore[no-any-return]
    said = [
        forward(module, context.augment(inputs, generator)).float().softmax(dim=1)
        for _ in range(views)
    ]
    return torch.stack(said).mean(dim=0)


def _words(offers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in offers.items()) or "nothing said"
