"""The real data sets, where they lie beside the project."""

from pathlib import Path

import numpy as np
import pytest

from dynsnap.data import from_arrays

REAL = Path(__file__).parents[3] / "shared" / "data"


def cifar100_labels():
    """Both splits of CIFAR-100 with its real labels, and nothing to see on the images."""
    file = REAL / "cifar-100" / "labels.npz"
    if not file.is_file():
        pytest.skip("the real CIFAR-100 is not beside the project")
    with np.load(file) as labels:
        return tuple(
            from_arrays(
                np.zeros((len(labels[f"{split}_labels"]), 1)),
                labels[f"{split}_labels"],
                classes=labels["fine_names"].tolist(),
                name=split,
            )
            for split in ("train", "test")
        )


def sizes(stream):
    """The paper's T_i: D_i without what a round validates on."""
    return [
        len(rows) - int(counts.sum())
        for rows, counts in zip(stream.generations, stream.validation, strict=True)
    ]
