"""The pages that are opened: each kind, and each awkward case, made once."""

import numpy as np

from dynsnap.cli._report import findings as read_run
from dynsnap.comparison import compare
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions
from tests.cli.helpers import NEW, OLD, TWIN
from tests.comparison.made import generations
from tests.report.html.test_study_page import RESULTS, findings
from tests.report.html.test_study_page import SECTIONS as STUDY
from tests.report.pages import comparison_page, gate_page, study_page

CIFAR10 = RESULTS / "cifar10-paper"
HOSTILE = "<script>alert(1)</script>"


def two():
    return comparison_page(compare(OLD, NEW, noise_floor=TWIN, resamples=100))


def many():
    slices = {"place": ["north", "south"] * 200}
    return comparison_page(compare(*generations(rows=400, count=5, slices=slices), resamples=50))


def gate():
    found = compare(OLD, NEW, noise_floor=TWIN, resamples=100)
    rules = [Rule(metric="lost", at_most=0.01), Rule(metric="consistency", at_least=0.9)]
    return gate_page(judge(found, rules), found)


def study():
    return study_page(findings())


def shipped():
    """The paper's study of CIFAR-10, as it comes with the sources."""
    return study_page(read_run(CIFAR10))


def pictured():
    """Lost inputs as pictures, in two sizes and in grey and colour; one is not known."""
    found = compare(*generations(rows=300, count=3), resamples=20)
    names = sorted({one.id for one in (*found.pairs[-1].flipped, *found.unstable)})
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((8, 8, 1), (64, 48, 3))]
    looks = {name: images[place % 2] for place, name in enumerate(names[1:])}
    return comparison_page(found, excerpts=looks)


def hundred():
    rng = np.random.default_rng(0)
    classes = [f"class number {i} with a rather long name, really" for i in range(100)]
    truth = rng.integers(0, 100, 3000)
    said = [np.where(rng.random(3000) < 0.7, truth, rng.integers(0, 100, 3000)) for _ in range(2)]
    slices = {
        "superclass": [f"superclass {label // 5} with a long name too" for label in truth],
        "training rows": ["minority" if label < 10 else "majority" for label in truth],
    }
    found = compare(
        *(
            Predictions(ids=range(3000), classes=classes, labels=x, truth=truth, slices=slices)
            for x in said
        ),
        resamples=20,
    )
    return comparison_page(found, learned_from=dict.fromkeys(classes, 500))


def million():
    rng = np.random.default_rng(0)
    rows = 1_000_000
    truth = rng.integers(0, 10, rows)
    said = [np.where(rng.random(rows) < 0.8, truth, rng.integers(0, 10, rows)) for _ in range(2)]
    return comparison_page(
        compare(
            *(
                Predictions(ids=range(rows), classes=list("abcdefghij"), labels=x, truth=truth)
                for x in said
            ),
            resamples=10,
        )
    )


def unlabelled():
    return comparison_page(compare(*generations(rows=300, truth=False), resamples=20))


def unchanged():
    old, _ = generations(rows=300)
    return comparison_page(compare(old, old, resamples=20))


def hostile():
    rng = np.random.default_rng(0)
    classes = [HOSTILE, '"><img src=x onerror=alert(1)>', "</main></body>", "' onclick='alert(1)"]
    truth = rng.integers(0, 4, 200)
    ids = [f"{HOSTILE} {row}" for row in range(200)]
    said = [np.where(rng.random(200) < 0.6, truth, rng.integers(0, 4, 200)) for _ in range(3)]
    slices = {HOSTILE: [HOSTILE, "</td>"] * 100}
    return comparison_page(
        compare(
            *(
                Predictions(ids=ids, classes=classes, labels=x, truth=truth, slices=slices)
                for x in said
            ),
            names=[f"{HOSTILE}{i}" for i in range(3)],
            resamples=20,
        )
    )


PAGES = {
    make.__name__: make
    for make in (
        *(two, many, gate, study, shipped, pictured, hundred, million, unlabelled, unchanged),
        hostile,
    )
}

_LABELLED = ["transitions", "metrics", "classes", "answers", "inputs"]
SECTIONS = {
    "two": [*_LABELLED, "slices"],
    "many": ["generations", *_LABELLED, "slices"],
    "gate": ["rules", *_LABELLED, "slices"],
    "study": list(STUDY),
    "shipped": [
        *("methods", "cost", "frontier", "sweeps", "curves", "audit", "closer", "everything", "run")
    ],
    "pictured": ["generations", *_LABELLED],
    "hundred": [*_LABELLED, "slices"],
    "million": _LABELLED,
    "unlabelled": ["metrics", "answers", "inputs", "notes"],
    "unchanged": _LABELLED,
    "hostile": ["generations", *_LABELLED, "slices"],
}
