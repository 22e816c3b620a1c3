"""What tasks measure, by the definitions alone: one input after another, in plain Python."""

import itertools


def share(rows, weights, of):
    """The weighted mean of a number of each row."""
    return sum(w * of(row) for row, w in zip(rows, weights, strict=True)) / sum(weights)


def regression(old, new, truth, weights, tolerance, near):
    rows = list(zip(old, new, truth, strict=True))
    was = [abs(a - y) <= near for a, _, y in rows]
    now = [abs(b - y) <= near for _, b, y in rows]
    both = list(zip(rows, was, now, strict=True))
    return {
        "consistency": share(both, weights, lambda r: abs(r[0][0] - r[0][1]) <= tolerance),
        "mean_absolute_change": share(both, weights, lambda r: abs(r[0][0] - r[0][1])),
        "mean_absolute_error_change": share(
            both, weights, lambda r: abs(r[0][1] - r[0][2]) - abs(r[0][0] - r[0][2])
        ),
        **_cases(both, weights),
    }


def sets(old, new, truth, weights, right):
    rows = list(zip(old, new, truth, strict=True))
    both = [(row, right(row[0], row[2]), right(row[1], row[2])) for row in rows]
    return {
        "consistency": share(both, weights, lambda r: set(r[0][0]) == set(r[0][1])),
        "jaccard_consistency": share(both, weights, lambda r: jaccard(r[0][0], r[0][1])),
        **_cases(both, weights),
    }


def jaccard(one, other):
    either = set(one) | set(other)
    return len(set(one) & set(other)) / len(either) if either else 1.0


def _cases(both, weights):
    return {
        "kept": share(both, weights, lambda r: r[1] and r[2]),
        "gained": share(both, weights, lambda r: not r[1] and r[2]),
        "lost": share(both, weights, lambda r: r[1] and not r[2]),
        "never": share(both, weights, lambda r: not r[1] and not r[2]),
    }


def graded(old, new, weights):
    """Each of `old` and `new` is a list of grades for every input."""
    rows = list(zip(old, new, strict=True))

    def expected(of):
        def mean(row):
            pairs = list(itertools.product(*row))
            return sum(of(a, b) for a, b in pairs) / len(pairs)

        return share(rows, weights, mean)

    return {
        "kept": expected(min),
        "gained": expected(lambda a, b: max(0, b - a)),
        "lost": expected(lambda a, b: max(0, a - b)),
        "consistency": expected(lambda a, b: 1 - abs(a - b)),
    }


def noise_floor(old, weights):
    """What two different answers to an input lose, of inputs that have two."""
    several = [(row, w) for row, w in zip(old, weights, strict=True) if len(row) > 1]

    def mean(row):
        pairs = list(itertools.permutations(row, 2))
        return sum(max(0, a - b) for a, b in pairs) / len(pairs)

    return share([row for row, _ in several], [w for _, w in several], mean)
