"""Rounds of torch modules: training, snapshots, checkpoints, prediction. Needs `dynsnap[torch]`."""

from dynsnap.train._augment import Augmentation, ShiftsAndFlips
from dynsnap.train._datasets import pool_of
from dynsnap.train._devices import Precision
from dynsnap.train._modules import (
    ExportedModule,
    MemberModule,
    StackedModule,
    export_modules,
    member_modules,
)
from dynsnap.train._named import Focal, named_loss, named_optimizer
from dynsnap.train._optimizers import Adam
from dynsnap.train._own_loop import (
    ModuleScores,
    Stateful,
    batches,
    check_distillation,
    check_same_shapes,
    check_trained,
    copied,
    count_of,
    learner_of,
    pack_loop,
    restore_loop,
    same_random_numbers,
    stateful,
    taught_losses,
    unpack_loop,
    weights_of,
)
from dynsnap.train._predict import Predictor
from dynsnap.train._prepare import Features, Images, Pixels, Preparation, Standardised
from dynsnap.train._text import Words, tokenise
from dynsnap.train._trainer import TorchTrainer
from dynsnap.train._weights import widened

__all__ = [
    "Adam",
    "Augmentation",
    "ExportedModule",
    "Features",
    "Focal",
    "Images",
    "MemberModule",
    "ModuleScores",
    "Pixels",
    "Precision",
    "Predictor",
    "Preparation",
    "ShiftsAndFlips",
    "StackedModule",
    "Standardised",
    "Stateful",
    "TorchTrainer",
    "Words",
    "batches",
    "check_distillation",
    "check_same_shapes",
    "check_trained",
    "copied",
    "count_of",
    "export_modules",
    "learner_of",
    "member_modules",
    "named_loss",
    "named_optimizer",
    "pack_loop",
    "pool_of",
    "restore_loop",
    "same_random_numbers",
    "stateful",
    "taught_losses",
    "tokenise",
    "unpack_loop",
    "weights_of",
    "widened",
]
