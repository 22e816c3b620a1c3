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
* Precision, recall, F1, balanced accuracy, Matthews' coefficient, log loss, Brier score, AUROC and
  average precision are scikit-learn's. Within an average over classes a 0/0 counts as 0, as there;
  of one class it is NaN. Matthews' coefficient and AUROC are NaN where all inputs are of one class.
"""

from dynsnap.metrics._agreement import (
    accuracy,
    ambiguity,
    churn,
    cohen_kappa,
    consistency,
    correct_consistency,
    discrepancy,
    fleiss_kappa,
    krippendorff_alpha,
    majority_classes,
    neutral_churn,
    top_k_accuracy,
    top_k_consistency,
)
from dynsnap.metrics._catalogue import aliases, catalogue, metric, register, task_metrics
from dynsnap.metrics._classification import balanced_accuracy, f1, matthews, precision, recall
from dynsnap.metrics._metric import (
    GROUPS,
    Cases,
    Direction,
    Group,
    Interval,
    Metric,
    Need,
    Scope,
)
from dynsnap.metrics._ranking import auroc, average_precision
from dynsnap.metrics._scores import (
    brier,
    correct_distance,
    correctness,
    cosine,
    distances,
    expected_calibration_error,
    jensen_shannon,
    log_loss,
    minkowski,
    pearson,
    prediction_difference,
)
from dynsnap.metrics._transitions import (
    Transitions,
    backward_error_compatibility,
    backward_trust_compatibility,
    mcnemar,
    mcnemar_of_counts,
    negative_flip_rate,
    positive_flip_rate,
    relative_negative_flip_rate,
    transitions,
    win_loss_ratio,
)

__all__ = [
    "GROUPS",
    "Cases",
    "Direction",
    "Group",
    "Interval",
    "Metric",
    "Need",
    "Scope",
    "Transitions",
    "accuracy",
    "aliases",
    "ambiguity",
    "auroc",
    "average_precision",
    "backward_error_compatibility",
    "backward_trust_compatibility",
    "balanced_accuracy",
    "brier",
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
    "f1",
    "fleiss_kappa",
    "jensen_shannon",
    "krippendorff_alpha",
    "log_loss",
    "majority_classes",
    "matthews",
    "mcnemar",
    "mcnemar_of_counts",
    "metric",
    "minkowski",
    "negative_flip_rate",
    "neutral_churn",
    "pearson",
    "positive_flip_rate",
    "precision",
    "prediction_difference",
    "recall",
    "register",
    "relative_negative_flip_rate",
    "task_metrics",
    "top_k_accuracy",
    "top_k_consistency",
    "transitions",
    "win_loss_ratio",
]
