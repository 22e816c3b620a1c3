"""Make the example files: small networks on scikit-learn's digits, retrained as data arrives.

    python examples/make.py

`old` is trained on 200 images and `new` on 400, the first 200 among them; `twin` is `old` trained
once more on the same 200 images from another seed. All are asked about the same 797 other images.
`old-members.npz` and `new-members.npz` hold the scores of five networks each, for `dynsnap audit`.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import dynsnap

HERE = Path(__file__).parent
MEMBERS = 5


def scores(rows: int, seed: int) -> np.ndarray:
    """What a network trained on the first `rows` images says about the images kept aside."""
    network = MLPClassifier(
        hidden_layer_sizes=(10,), learning_rate_init=0.01, max_iter=1000, random_state=seed
    )
    network.fit(train_x[:rows], train_y[:rows])
    return network.predict_proba(test_x).astype(np.float32)


def predictions(rows_of_scores: np.ndarray) -> dynsnap.Predictions:
    return dynsnap.Predictions(
        ids=test_ids,
        classes=[str(digit) for digit in range(10)],
        scores=rows_of_scores,
        truth=test_y,
        slices={"ink": ink},
    )


digits = load_digits()
images = digits.data / 16
train_x, test_x, train_y, test_y, _, test_ids = train_test_split(
    images,
    digits.target,
    np.arange(len(images)),
    test_size=797,
    stratify=digits.target,
    random_state=0,
)
# A slice: how much of the image is dark, in thirds.
dark = test_x.sum(axis=1)
ink = np.array(["light", "medium", "heavy"])[np.digitize(dark, np.quantile(dark, [1 / 3, 2 / 3]))]

old = np.stack([scores(200, seed=seed) for seed in range(MEMBERS)])
new = np.stack([scores(400, seed=100 + seed) for seed in range(MEMBERS)])
twin = scores(200, seed=200)
for name, rows_of_scores in [("old", old[0]), ("new", new[0]), ("twin", twin)]:
    dynsnap.predictions.write(predictions(rows_of_scores), HERE / f"{name}.parquet")
for name, members in [("old", old), ("new", new)]:
    np.savez_compressed(HERE / f"{name}-members.npz", scores=members, truth=test_y)
