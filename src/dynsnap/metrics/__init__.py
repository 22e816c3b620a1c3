"""Every metric of consistency, as a pure function: labels or scores in, a float out.

Labels are positions among the classes (or class names) of shape (inputs,), scores are rows of
shape (inputs, classes), old before new. All values are fractions, never percentages. Each function
takes `weights=`, the importance of each input, except `mcnemar`, which counts. `catalogue` lists
the metrics by name, `metric(name)` finds one, `register` adds one.

The rules, where a definition leaves something open:

* Ties go to the lowest class index: in labels taken from scores and in the top k.
* A constant row has no Pearson correlation: two constant rows count as 1, one counts as 0. A row of
  zeros has no cosine: likewise.
* Top k: k must lie between 1 and the number of classes. Top-k consistency is 1 for any scores as
  soon as 2k exceeds the number of classes.
* Empty input is refused, and so are NaN and infinite scores.
* `correctness`, `prediction_difference`, `jensen_shannon` and `expected_calibration_error` are
  about probabilities: they refuse negative scores and rows that are off 1 by more than 0.01. Rows
  are used as they are, not rescaled. The other score metrics take any real scores.
* Jensen-Shannon uses logarithms of base 2. Calibration bins are closed on the right.
* A share of nothing (0/0) is NaN: backward trust compatibility when nothing was right before,
  backward error compatibility when nothing is wrong now, the relative negative flip rate in either
  case, the win-loss ratio when nothing was gained or lost, the kappas and alpha when only one
  label is in use. The win-loss ratio is infinite when something was gained and nothing lost.
"""

from dynsnap.metrics._agreement import (
    accuracy,
    churn,
    cohen_kappa,
    consistency,
    correct_consistency,
    neutral_churn,
)
from dynsnap.metrics._calibration import expected_calibration_error
from dynsnap.metrics._catalogue import (
    Cases,
    Direction,
    Interval,
    Metric,
    Need,
    Scope,
    aliases,
    catalogue,
    metric,
    register,
)
from dynsnap.metrics._correlation import cosine, pearson
from dynsnap.metrics._distance import correct_distance, correctness, distances, minkowski
from dynsnap.metrics._majority import majority_classes
from dynsnap.metrics._many import ambiguity, discrepancy, fleiss_kappa, krippendorff_alpha
from dynsnap.metrics._mcnemar import mcnemar, mcnemar_of_counts
from dynsnap.metrics._probability import jensen_shannon, prediction_difference
from dynsnap.metrics._top_k import top_k_accuracy, top_k_consistency
from dynsnap.metrics._transitions import (
    Transitions,
    backward_error_compatibility,
    backward_trust_compatibility,
    negative_flip_rate,
    positive_flip_rate,
    relative_negative_flip_rate,
    transitions,
    win_loss_ratio,
)

__all__ = [
    "Cases",
    "Direction",
    "Interval",
    "Metric",
    "Need",
    "Scope",
    "Transitions",
    "accuracy",
    "aliases",
    "ambiguity",
    "backward_error_compatibility",
    "backward_trust_compatibility",
    "catalogue",
    "churn",
    "cohen_kappa",
    "consistency",
    "correct_consistency",
    "correct_distance",
    "correctness",
    "cosine",
    "discrepancy",
    "distances",
    "expected_calibration_error",
    "fleiss_kappa",
    "jensen_shannon",
    "krippendorff_alpha",
    "majority_classes",
    "mcnemar",
    "mcnemar_of_counts",
    "metric",
    "minkowski",
    "negative_flip_rate",
    "neutral_churn",
    "pearson",
    "positive_flip_rate",
    "prediction_difference",
    "register",
    "relative_negative_flip_rate",
    "top_k_accuracy",
    "top_k_consistency",
    "transitions",
    "win_loss_ratio",
]
