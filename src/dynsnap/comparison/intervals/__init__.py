"""How far a measured value may be off: the methods of interval, each by its name in the field.

`clopper_pearson` is exact, and serves shares of inputs that all count the same. `BayesianBootstrap`
serves everything else that is a function of sums over inputs: means, ratios, kappas, weighted or
not. A `Statistic` tells it what the metrics are and what one more input could do to them.
"""

from dynsnap.comparison.intervals._bayesian_bootstrap import (
    BayesianBootstrap,
    Ends,
    Metrics,
    Sampled,
    Statistic,
)
from dynsnap.comparison.intervals._clopper_pearson import clopper_pearson
from dynsnap.comparison.intervals._statistics import (
    AgreementStatistic,
    CohenStatistic,
    GenerationStatistic,
    PairStatistic,
)

__all__ = [
    "AgreementStatistic",
    "BayesianBootstrap",
    "CohenStatistic",
    "Ends",
    "GenerationStatistic",
    "Metrics",
    "PairStatistic",
    "Sampled",
    "Statistic",
    "clopper_pearson",
]
