"""The pages that are opened: each kind, and each awkward case, made once."""

import numpy as np

from dynsnap import watch as watching
from dynsnap.cli._report import findings as read_run
from dynsnap.comparison import compare
from dynsnap.gate import Rule, judge
from dynsnap.predictions import Predictions
from dynsnap.report import HistoryFindings, RetrainRow
from tests.cli.helpers import NEW, OLD, TWIN
from tests.comparison.made import generations
from tests.report.html.test_study_page import RESULTS, findings
from tests.report.html.test_study_page import SECTIONS as STUDY
from tests.report.pages import (
    comparison_page,
    gate_page,
    history_page,
    study_page,
    watch_page,
)

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


def weeks(count=14, name="delays", classes=("on time", "late", "cancelled")):
    """A project after some weeks: kept back, unresolved, a week without rows, a rollback."""
    rng = np.random.default_rng(0)
    rows = []
    for week in range(count):
        values = sorted(rng.random(3) / 50)
        changes = {"accuracy_change": [values[1] - 0.01, values[0] - 0.02, values[2]]}
        verdict = "none" if not week else ("passed", "passed", "failed", "unresolved")[week % 4]
        measured = {"accuracy_new": [0.6 + values[0], 0.58, 0.66]}
        if week:
            measured |= {**changes, "accuracy_old": [0.6, 0.57, 0.65]}
            measured |= {"lost": [values[0], 0.0, 0.03], "gained": [values[2], 0.001, 0.04]}
        shares = rng.dirichlet(np.ones(len(classes))).tolist()
        rows.append(
            RetrainRow(
                period=str(np.datetime64("2024-01-01") + 7 * week),
                name="",
                generation=week + 1,
                held_against=week or None,
                decision={"none": "first", "passed": "promoted"}.get(verdict, "kept"),
                verdict=verdict,
                train=10_000 * (week + 1),
                evaluated=4_000,
                held_out=measured,
                newest=measured,
                shares=dict(zip(classes, shares, strict=True)),
                drift=0.1 if week else None,
                seconds=12.5,
                cost=0.2,
                skipped=("2024-03-04",) if week == 10 else (),
            )
        )
    return HistoryFindings(
        name=name,
        cadence="week",
        deployed=count - 1,
        rows=tuple(rows),
        advice="The last 3 retrains changed nothing that matters. Retrain less often.",
        by_hand=(f"2024-03-05T06:17:00Z: rollback to generation 9. {name}",),
    )


def history():
    return history_page(weeks())


def history_hostile():
    return history_page(weeks(60, HOSTILE, (HOSTILE, '"><img src=x onerror=alert(1)>', "a" * 300)))


def traffic(names):
    """Two months of live traffic with gaps, in which one slice changes and others do not."""
    counts = watching.Counts()
    for day in range(60):
        if day in (20, 21):
            continue
        rows = [(name, 10 if at or day < 45 else 60) for at, name in enumerate(names)]
        date = str(np.datetime64("2024-05-01") + day)
        counts.add(watching.ALL, date, 200 * len(names), sum(changed for _, changed in rows))
        for name, changed in rows:
            counts.add((names[0], name), date, 200, changed)
    return watching.judge(counts, limit=0.08, notes=(f"A note. {names[0]}",))


def watch():
    return watch_page(traffic(("north", "south", "east")))


def watch_hostile():
    many = (HOSTILE, '"><img src=x onerror=alert(1)>', *(f"{at} " + "b" * 99 for at in range(40)))
    return watch_page(traffic(many))


def quiet():
    counts = watching.Counts()
    counts.add(watching.ALL, "2024-05-01", 10, 0)
    return watch_page(watching.judge(counts, limit=0.05))


PAGES = {
    make.__name__: make
    for make in (
        *(two, many, gate, study, shipped, pictured, hundred, million, unlabelled, unchanged),
        *(hostile, history, history_hostile, watch, watch_hostile),
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
    "history": ["retrains", "classes", "by-hand"],
    "history_hostile": ["retrains", "classes", "by-hand"],
    "watch": ["days", "slices", "notes"],
    "watch_hostile": ["days", "slices", "notes"],
}
