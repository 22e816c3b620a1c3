"""How far a measured value may be off: the methods of interval, each by its name in the field.

`clopper_pearson` is exact, and serves shares of inputs that all count the same. `BayesianBootstrap`
serves everything else that is a function of sums over inputs: means, ratios, kappas, weighted or
not. A `Statistic` defines what the metrics are and what one more input could do to them.
`paired_difference` is about two methods, each with several replicates on the same inputs.
"""

from dynsnap.comparison.intervals._bayesian_bootstrap import (
    MOST_RESAMPLES,
    BayesianBootstrap,
    Ends,
    Metrics,
    Sampled,
    Statistic,
)
from dynsnap.comparison.intervals._clopper_pearson import clopper_pearson
from dynsnap.comparison.intervals._paired import (
    PairedDifference,
    difference_of_means,
    paired_difference,
    student_quantile,
)
from dynsnap.comparison.intervals._statistics import (
    AgreementStatistic,
    ClassStatistic,
    CohenStatistic,
    ConfusionStatistic,
    GenerationStatistic,
    MultipleStatistic,
    PairStatistic,
    RankStatistic,
    changes,
)

__all__ = [
    "MOST_RESAMPLES",
    "AgreementStatistic",
    "BayesianBootstrap",
    "ClassStatistic",
    "CohenStatistic",
    "ConfusionStatistic",
    "Ends",
    "GenerationStatistic",
    "Metrics",
    "MultipleStatistic",
    "PairStatistic",
    "PairedDifference",
    "RankStatistic",
    "Sampled",
    "Statistic",
    "changes",
    "clopper_pearson",
    "difference_of_means",
    "paired_difference",
    "student_quantile",
]
