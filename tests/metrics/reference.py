"""Every metric once more, slowly: loops over rows and classes, straight from the definitions."""

import itertools
import math
from fractions import Fraction

import numpy as np

from dynsnap.metrics import Cases


def mean(values, weights=None):
    values = list(values)
    weights = [1] * len(values) if weights is None else list(weights)
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def share(part, whole):
    if whole:
        return part / whole
    return math.inf if part else math.nan


def ranked(row):
    """Classes from the highest score down; among equals the lower index first."""
    return sorted(range(len(row)), key=lambda c: (-row[c], c))


def label(row):
    return ranked(row)[0]


def distance(a, b, order):
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return max(gaps) if math.isinf(order) else sum(gap**order for gap in gaps) ** (1 / order)


def one_hot(truth, classes):
    return [1.0 if c == truth else 0.0 for c in range(classes)]


def cases(old, new, truth, w):
    """How much there is of each case, row by row; without truth every input counts as wrong."""
    w = [1.0] * len(old) if w is None else list(w)
    truth = [None] * len(old) if truth is None else truth
    sums = dict.fromkeys(Cases._fields, 0.0)
    for a, b, y, weight in zip(old, new, truth, w, strict=True):
        if y in (a, b):
            case = "kept" if a == b else "gained" if b == y else "lost"
        else:
            case = "wrong_same" if a == b else "wrong_other"
        for name in (case, "all"):
            sums[name] += weight
    return Cases(**{name: np.array(weight) for name, weight in sums.items()})


# Labels: (old, new, truth, weights).


def accuracy(old, new, truth, w):
    return mean((a == y for a, y in zip(old, truth, strict=True)), w)


def consistency(old, new, truth, w):
    return mean((a == b for a, b in zip(old, new, strict=True)), w)


def churn(old, new, truth, w):
    return mean((a != b for a, b in zip(old, new, strict=True)), w)


def kept(old, new, truth, w):
    return mean((a == y and b == y for a, b, y in zip(old, new, truth, strict=True)), w)


def gained(old, new, truth, w):
    return mean((a != y and b == y for a, b, y in zip(old, new, truth, strict=True)), w)


def lost(old, new, truth, w):
    return mean((a == y and b != y for a, b, y in zip(old, new, truth, strict=True)), w)


def never(old, new, truth, w):
    return mean((a != y and b != y for a, b, y in zip(old, new, truth, strict=True)), w)


def neutral_churn(old, new, truth, w):
    rows = zip(old, new, truth, strict=True)
    return mean((a != b and a != y and b != y for a, b, y in rows), w)


def composite(*args):
    return kept(*args) + gained(*args) - lost(*args)


def relative_negative_flip_rate(*args):
    return share(lost(*args), (kept(*args) + lost(*args)) * (lost(*args) + never(*args)))


def backward_trust_compatibility(*args):
    return share(kept(*args), kept(*args) + lost(*args))


def backward_error_compatibility(*args):
    return share(never(*args), lost(*args) + never(*args))


def win_loss_ratio(*args):
    return share(gained(*args), lost(*args))


def cohen_kappa(old, new, truth, w):
    observed = consistency(old, new, truth, w)
    known = set(old) | set(new)
    expected = sum(mean((a == c for a in old), w) * mean((b == c for b in new), w) for c in known)
    return math.nan if len(known) == 1 else (observed - expected) / (1 - expected)


def mcnemar(lost_count, gained_count):
    """In whole numbers, so without rounding."""
    flips = lost_count + gained_count
    tail = ways = 1
    for k in range(1, min(lost_count, gained_count) + 1):
        ways = ways * (flips - k + 1) // k
        tail += ways
    return float(min(Fraction(1), Fraction(2 * tail, 2**flips)))


# Scores: (old, new, truth, weights).


def over_rows(measure):
    def metric(old, new, truth, w):
        return mean(map(measure, old, new, truth), w)

    return metric


def _cosine(a, b):
    product = sum(x * y for x, y in zip(a, b, strict=True))
    sizes = math.sqrt(sum(x * x for x in a)), math.sqrt(sum(y * y for y in b))
    if 0 in sizes:
        return 1.0 if sizes == (0, 0) else 0.0
    return product / (sizes[0] * sizes[1])


def _pearson(a, b):
    if len(set(a)) == 1 or len(set(b)) == 1:
        return 1.0 if len(set(a)) == len(set(b)) == 1 else 0.0
    return _cosine([x - mean(a) for x in a], [y - mean(b) for y in b])


def _jensen_shannon(a, b):
    middle = [(x + y) / 2 for x, y in zip(a, b, strict=True)]
    return sum(
        x * math.log2(x / m) / 2
        for row in (a, b)
        for x, m in zip(row, middle, strict=True)
        if x > 0
    )


def _correct_distance(a, b, y, order=2):
    r = one_hot(y, len(a))
    return distance(a, b, order) + distance(a, r, order) + distance(b, r, order)


pearson = over_rows(lambda a, b, y: _pearson(list(a), list(b)))
cosine = over_rows(lambda a, b, y: _cosine(a, b))
minkowski = over_rows(lambda a, b, y: distance(a, b, 2))
correct_distance = over_rows(_correct_distance)
prediction_difference = over_rows(lambda a, b, y: distance(a, b, 1) / 2)
jensen_shannon = over_rows(lambda a, b, y: _jensen_shannon(a, b))
correctness = over_rows(
    lambda a, b, y: (math.sqrt(2) - distance(a, one_hot(y, len(a)), 2)) / math.sqrt(2)
)
top_2_consistency = over_rows(lambda a, b, y: bool(set(ranked(a)[:2]) & set(ranked(b)[:2])))
top_2_accuracy = over_rows(lambda a, b, y: y in ranked(a)[:2])


log_loss = over_rows(lambda a, b, y: -math.log(min(max(a[y], 2.0**-52), 1 - 2.0**-52)))
brier = over_rows(
    lambda a, b, y: distance(a, one_hot(y, len(a)), 2) ** 2 / (2 if len(a) == 2 else 1)
)


def quality(name, labels, truth, w):
    """A metric of labels beside the truth, by the definitions of scikit-learn."""
    w = [1] * len(labels) if w is None else list(w)
    rows = [row for row in zip(truth, labels, w, strict=True) if row[2]]
    total = sum(weight for _, _, weight in rows)
    used = sorted({true for true, _, _ in rows} | {said for _, said, _ in rows})

    def weight_of(test):
        return sum(weight for true, said, weight in rows if test(true, said))

    each = {}
    for c in used:
        both = weight_of(lambda true, said, c=c: true == said == c)
        of_truth = weight_of(lambda true, said, c=c: true == c)
        of_label = weight_of(lambda true, said, c=c: said == c)
        precision = both / of_label if of_label else 0
        recall = both / of_truth if of_truth else 0
        f1 = 2 * precision * recall / (precision + recall) if both else 0
        each[c] = {"precision": precision, "recall": recall, "f1": f1, "weight": of_truth}
    if name == "balanced_accuracy":
        return mean(one["recall"] for one in each.values() if one["weight"])
    if name == "matthews":

        def shares(place, value):
            return sum(weight for *row, weight in rows if row[place] == value) / total

        def mixed(one, other):
            together = {
                (c, d): sum(wt for *row, wt in rows if row[one] == c and row[other] == d) / total
                for c in used
                for d in used
            }
            return sum(together[c, c] - shares(one, c) * shares(other, c) for c in used)

        if len({true for true, _, _ in rows}) == 1:
            return math.nan
        if len({said for _, said, _ in rows}) == 1:
            return 0.0
        return mixed(0, 1) / math.sqrt(mixed(0, 0) * mixed(1, 1))
    metric, _, average = name.rpartition("_")
    if average == "macro":
        return mean(one[metric] for one in each.values())
    values = list(each.values())
    return mean((one[metric] for one in values), [one["weight"] for one in values])


def ranking(name, scores, inside, w):
    """AUROC from every two inputs; average precision from every input of the class."""
    w = [1] * len(scores) if w is None else list(w)
    rows = list(zip(scores, inside, w, strict=True))
    own, others = ([row for row in rows if row[1] == side and row[2]] for side in (True, False))
    if not own or not others:
        return math.nan
    if name == "auroc":
        wins = sum(
            a[2] * b[2] * (1 if a[0] > b[0] else 0.5 if a[0] == b[0] else 0)
            for a in own
            for b in others
        )
        return wins / sum(a[2] for a in own) / sum(b[2] for b in others)
    return mean(
        (
            sum(b[2] for b in own if b[0] >= a[0])
            / sum(b[2] for b in (*own, *others) if b[0] >= a[0])
            for a in own
        ),
        [a[2] for a in own],
    )


def expected_calibration_error(old, new, truth, w, bins=15):
    w = [1] * len(old) if w is None else list(w)
    total = 0.0
    for b in range(bins):
        inside = [i for i, row in enumerate(old) if b < max(row) * bins <= b + 1]
        weight = sum(w[i] for i in inside)
        if weight:
            right = sum(w[i] * (label(old[i]) == truth[i]) for i in inside) / weight
            sure = sum(w[i] * max(old[i]) for i in inside) / weight
            total += weight / sum(w) * abs(right - sure)
    return total


# All generations: (labels of shape (generations, inputs), weights).


def fleiss_kappa(labels, w):
    """Fleiss' own formula: counts of each label for each input."""
    raters, known = len(labels), sorted({c for row in labels for c in row})
    counts = [[column.count(c) for c in known] for column in zip(*labels, strict=True)]
    agree = [(sum(n * n for n in row) - raters) / (raters * (raters - 1)) for row in counts]
    pooled = [mean((row[c] / raters for row in counts), w) for c in range(len(known))]
    expected = sum(p * p for p in pooled)
    return math.nan if len(known) == 1 else (mean(agree, w) - expected) / (1 - expected)


def krippendorff_alpha(labels, w):
    """The matrix of coincidences, weighted so that the inputs together still count as many."""
    columns = list(zip(*labels, strict=True))
    w = [1] * len(columns) if w is None else list(w)
    w = [x * len(w) / sum(w) for x in w]
    pairs: dict[tuple[int, int], float] = {}
    for weight, column in zip(w, columns, strict=True):
        for a, b in itertools.permutations(column, 2):
            pairs[a, b] = pairs.get((a, b), 0) + weight / (len(column) - 1)
    total = sum(pairs.values())
    each = {c: sum(v for (a, _), v in pairs.items() if a == c) for c in {a for a, _ in pairs}}
    observed = sum(v for (a, b), v in pairs.items() if a != b)
    used = [c for c in each if each[c]]
    expected = sum(each[a] * each[b] for a, b in itertools.permutations(used, 2))
    return 1 - (total - 1) * observed / expected if expected else math.nan


def ambiguity(labels, w):
    return mean((len(set(column)) > 1 for column in zip(*labels, strict=True)), w)


def discrepancy(labels, w):
    return max(churn(a, b, None, w) for a, b in itertools.combinations(labels, 2))
