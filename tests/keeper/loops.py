"""A loop of one's own, in small: a linear model on points of a plane."""

import numpy as np
import torch

from dynsnap.keeper import ModuleScores, SnapshotKeeper

torch.set_num_threads(1)

CLASSES = ("left", "right", "above")
SMALL = {"epochs": 4, "snapshots": 2, "members": 3, "resamples": 10}


def points(count, *, seed=0, classes=3):
    """Inputs in two dimensions, and the position of their class."""
    draw = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    centres = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.5]])
    return (centres[labels] + draw.normal(0, 0.7, (count, 2))).astype(np.float32), labels


def net(classes=3):
    return torch.nn.Sequential(
        torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, classes)
    )


def keeper(folder, **settings):
    """A keeper for these points."""
    given = {"classes": CLASSES, "score": ModuleScores(net), "test": points(60, seed=1), **SMALL}
    return SnapshotKeeper(folder, **{**given, **settings})


def train(kept, *, rows=120, classes=3, until=None):
    """Go through the rounds of a keeper; stop as if killed before the epoch `until` is ended."""
    inputs, labels = (torch.as_tensor(one) for one in points(rows, classes=classes))
    steps = 0
    for training in kept.rounds():
        torch.manual_seed(training.seed)
        model = net(classes)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for epoch in training.epochs(model, optimizer):
            model.train()
            for batch in torch.randperm(rows - 30).split(32):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs[batch]), labels[batch]).backward()
                optimizer.step()
            steps += 1
            if steps == until:
                raise KeyboardInterrupt
            model.eval()
            accuracy = (model(inputs[-30:]).argmax(1) == labels[-30:]).float().mean()
            training.end_epoch(epoch, accuracy)
    return kept


class Counter:
    """A model whose only weight is the number of epochs that it was trained for."""

    def __init__(self):
        self.weights = torch.zeros(1)

    def state_dict(self):
        return {"epochs": self.weights}

    def load_state_dict(self, state):
        self.weights = state["epochs"].clone()


def score_counter(weights, inputs, classes):
    """Scores that tell the epoch of a snapshot, the same for every input."""
    row = np.full(classes, 1.0)
    row[0] += float(weights["epochs"][0])
    return np.tile(row / row.sum(), (len(inputs), 1))
