"""Models to start from: factories that build a fresh module each time they are called."""

from dynsnap.train.models._convolutional import cnn
from dynsnap.train.models._dense import mlp, tabular_mlp
from dynsnap.train.models._fasttext import FastText, fasttext
from dynsnap.train.models._registry import NAMES, by_name, is_built_in, with_settings
from dynsnap.train.models._residual import DEPTHS, resnet

__all__ = [
    "DEPTHS",
    "NAMES",
    "FastText",
    "by_name",
    "cnn",
    "fasttext",
    "is_built_in",
    "mlp",
    "resnet",
    "tabular_mlp",
    "with_settings",
]
