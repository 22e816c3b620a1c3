"""scikit-learn's bundled handwritten digits: real data that needs no file."""

import numpy as np

from dynsnap.data._dataset import DataSet, needs, numbered
from dynsnap.data._growth import GrowthPlan, grow
from dynsnap.data._pool import Pool, Stream


def digits() -> DataSet:
    """1,797 images of handwritten digits, 8 x 8 pixels, ten classes, no official test set.

    The pixels are uint8 like those of other images: the bundled values 0..16 times 255/16, so that
    none of the seventeen levels are lost.

    Example:
        >>> digits().train.inputs.shape
        (1797, 8, 8, 1)
    """
    datasets = needs("sklearn.datasets", extra="torch", what="The digits data set")
    bundled = datasets.load_digits()
    images = np.rint(bundled.images * (255 / 16)).astype(np.uint8)[..., np.newaxis]
    pool = Pool(
        name="digits",
        inputs=images,
        labels=bundled.target.astype(np.int64),
        classes=tuple(str(digit) for digit in range(10)),
        ids=numbered("digits", len(images)),
    )
    return DataSet(train=pool)


def digits_growth(*, seed: int = 0) -> GrowthPlan:
    """Growth like the paper's CIFAR-10: 9, 9 and 10 digits in three generations, 6 comes late."""
    shares = (1, 0.9, 0.8, 0.95, 0.45, 0.3, 0.4, 0.1, 0.85, 0.75)
    return GrowthPlan(
        fractions=(0.8, 1.0, 1.0),
        shares={str(digit): share for digit, share in enumerate(shares)},
        late={"6": 3},
        test_size=0.6,
        validation=0.25,
        seed=seed,
    )


def digits_stream(*, seed: int = 0) -> Stream:
    """The digits as a stream of three generations: what the demo trains on.

    Example:
        >>> stream = digits_stream()
        >>> [len(set(stream.pool.labels[rows].tolist())) for rows in stream.generations]
        [9, 9, 10]
    """
    return grow(digits().train, digits_growth(seed=seed))
