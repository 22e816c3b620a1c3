"""Rounds of torch modules: training, snapshots, checkpoints, prediction. Needs `dynsnap[torch]`."""

from dynsnap.train._augment import Augmentation, ShiftsAndFlips
from dynsnap.train._datasets import pool_of
from dynsnap.train._devices import Precision
from dynsnap.train._optimizers import Adam
from dynsnap.train._predict import Predictor
from dynsnap.train._prepare import Features, Images, Pixels, Preparation, Standardised
from dynsnap.train._text import Words, tokenise
from dynsnap.train._trainer import TorchTrainer

__all__ = [
    "Adam",
    "Augmentation",
    "Features",
    "Images",
    "Pixels",
    "Precision",
    "Predictor",
    "Preparation",
    "ShiftsAndFlips",
    "Standardised",
    "TorchTrainer",
    "Words",
    "pool_of",
    "tokenise",
]
