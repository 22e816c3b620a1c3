"""The experiment: methods side by side on growing data, with every tool handed to it."""

from dynsnap.study._data import DataPlan, growth_of, open_stream
from dynsnap.study._ensembles import (
    NEVER_RETRAIN,
    NOISE_FLOOR,
    Ensemble,
    MethodWorkload,
    TrainedAs,
    Workload,
    ensembles_of,
    trained_as,
    workload,
)
from dynsnap.study._frontier import FRESH, LAST_LOSS, LATE_SHARE, MethodSummary, frontier
from dynsnap.study._pending import PendingRounds
from dynsnap.study._plan import Keep, StudyPlan, Sweep
from dynsnap.study._predictions import EnsemblePredictor
from dynsnap.study._publish import check_finished, publish
from dynsnap.study._read import Defaults, read_study
from dynsnap.study._rounds import RoundManager, StudyMonitor, missing_rounds
from dynsnap.study._run import INPUTS, SHOWN, StudyResult, run, shown_ids
from dynsnap.study._table import (
    Row,
    SweepRow,
    averaged,
    read_replicates,
    read_sweeps,
    read_table,
)
from dynsnap.study._toml import TomlTable
from dynsnap.study._train import TrainedEnsemble, check_generations, train_ensembles
from dynsnap.study.distilling import (
    SECOND_TEACHERS,
    UNTAUGHT,
    Distilled,
    DistillPlan,
    RetainedGain,
    SecondTeacher,
    distill,
)
from dynsnap.study.size import (
    LAWS,
    Draw,
    Law,
    LawName,
    SizeCurve,
    SizePoint,
    Sizes,
    Trial,
    Twins,
    estimate_sizes,
    stored_members,
)

__all__ = [
    "FRESH",
    "INPUTS",
    "LAST_LOSS",
    "LATE_SHARE",
    "LAWS",
    "NEVER_RETRAIN",
    "NOISE_FLOOR",
    "SECOND_TEACHERS",
    "SHOWN",
    "UNTAUGHT",
    "DataPlan",
    "Defaults",
    "DistillPlan",
    "Distilled",
    "Draw",
    "Ensemble",
    "EnsemblePredictor",
    "Keep",
    "Law",
    "LawName",
    "MethodSummary",
    "MethodWorkload",
    "PendingRounds",
    "RetainedGain",
    "RoundManager",
    "Row",
    "SecondTeacher",
    "SizeCurve",
    "SizePoint",
    "Sizes",
    "StudyMonitor",
    "StudyPlan",
    "StudyResult",
    "Sweep",
    "SweepRow",
    "TomlTable",
    "TrainedAs",
    "TrainedEnsemble",
    "Trial",
    "Twins",
    "Workload",
    "averaged",
    "check_finished",
    "check_generations",
    "distill",
    "ensembles_of",
    "estimate_sizes",
    "frontier",
    "growth_of",
    "missing_rounds",
    "open_stream",
    "publish",
    "read_replicates",
    "read_study",
    "read_sweeps",
    "read_table",
    "run",
    "shown_ids",
    "stored_members",
    "train_ensembles",
    "trained_as",
    "workload",
]
