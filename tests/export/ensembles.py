"""Saved ensembles of networks with random weights: nothing is trained."""

import numpy as np
import torch
from torch import nn

from dynsnap.store import SavedEnsemble
from dynsnap.train import models
from dynsnap.train._factory import Blueprint
from dynsnap.train._weights import StoredLearner

CLASSES = ("cat", "dog", "eel")


def learner(factory, inputs, *, kind="features", seed=0, classes=3, passes=1, dropout=0.0):
    """A network with random weights as a round would store it."""
    module = Blueprint(factory=factory, classes=classes, offers={"inputs": inputs}).build(
        seed=seed, dropout=dropout
    )
    for part in module.modules():  # random weights make no class likely: sharpen the last layer
        if isinstance(part, nn.Linear) and part.out_features == classes:
            part.weight.data.mul_(8)
    draw = torch.Generator().manual_seed(seed)
    prepared = {}
    if kind.startswith("pixels") or kind == "standardised":
        prepared["mean"] = torch.rand(inputs, generator=draw)
    if kind == "standardised":
        prepared["deviation"] = torch.rand(inputs, generator=draw) + 0.5
    return StoredLearner(
        weights=module.state_dict(),
        prepared=prepared,
        classes=classes,
        offers={"inputs": tuple(inputs)},
        prepare={"kind": kind},
        passes=passes,
        dropout=dropout,
    ).to_bytes()


def saved(learners, *, model, combination="average", known=None, classes=CLASSES):
    """An ensemble of these learners, as `dynsnap train` saves one."""
    count = len(learners)
    return SavedEnsemble(
        method="dynsnap-cyc",
        generation=1,
        combination=combination,
        classes=classes,
        accuracy=np.linspace(0.5, 0.9, count),
        learners=tuple(learners),
        positions=np.arange(count)[::-1].copy(),
        model=model,
        known=known,
    )


def small_cnn(members=3, *, kind="pixels", **settings):
    """Small convolutional networks for images of 8 by 8 pixels."""
    learners = [learner(models.cnn, (1, 8, 8), kind=kind, seed=seed) for seed in range(members)]
    return saved(learners, model={"name": "cnn"}, **settings)
