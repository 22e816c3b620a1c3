"""How often each kind of rule gives the wrong verdict, by simulation.

    python benchmarks/gate_errors.py [--replications 5000] [--write docs/gate.md]

Models are drawn whose true `lost`, `accuracy_change` and multiple of the noise floor lie exactly at
the thresholds of the rules, at a better value, or at a worse one. Each draw is a test set of so
many inputs. It goes through the statistics, draws and intervals of `dynsnap.compare`, many test
sets at a time, and through the decisions of `dynsnap.gate`. A model at its threshold is the
hardest case: there a rule on a bound errs most often, and should in at most half of what the
confidence leaves, 2.5 %.

`lost` and the noise floor depend on each other: some inputs are hard, and the new model and the
twin both lose mostly those. Weights are lognormal. Classes: twenty of them, all at the threshold.
"""

import argparse
import functools
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dynsnap._types import Floats
from dynsnap.comparison import Estimate
from dynsnap.comparison._readings import estimates, multiples, wholes_of
from dynsnap.comparison.intervals import BayesianBootstrap, PairStatistic, clopper_pearson
from dynsnap.gate import Rule
from dynsnap.gate._evidence import answer, decide
from dynsnap.metrics._tally_layout import CASES, TallyLayout

CELLS = ((100, False), (1000, False), (1000, True))  # inputs, and whether they are weighted
HARD = 0.2  # share of inputs on which both retrains lose most of what they lose
WRONG, GAINED = 0.06, 0.03  # of OLD; of all inputs
FLOOR = 0.05 / 1.2
CLASSES, IN_CLASS = 20, 200
MODELS = {"good": 0.02, "at": 0.05, "bad": 0.10}  # the true share that NEW loses
RULES = {
    "`lost` ≤ 0.05": {"metric": "lost", "at_most": 0.05},
    "`accuracy_change` ≥ −0.02": {"metric": "accuracy_change", "at_least": -0.02},
    "`lost` ≤ 1.2 × noise floor": {"metric": "lost", "at_most": "1.2 x noise_floor"},
}
AT_ONCE = 100  # test sets
MARKS = ("<!-- gate_errors: begin -->", "<!-- gate_errors: end -->")


def drawn(rng: np.random.Generator, samples: int, rows: int, lost: float) -> tuple[Floats, Floats]:
    """The cases of OLD and NEW, and of OLD and its twin: (samples, rows, cases)."""
    hard = rng.random((samples, rows)) < HARD
    wrong = rng.random((samples, rows)) < WRONG

    def cases(share: float, gained: float) -> Floats:
        easy = share / 5
        much = (share - easy * (1 - HARD)) / HARD
        loses = rng.random((samples, rows)) < np.where(hard, much, easy) / (1 - WRONG)
        gains = rng.random((samples, rows)) < gained / WRONG
        each = {
            "kept": ~wrong & ~loses,
            "gained": wrong & gains,
            "lost": ~wrong & loses,
            "wrong_same": wrong & ~gains,
            "wrong_other": np.zeros_like(wrong),
        }
        return np.stack([each[name] for name in CASES], axis=-1).astype(float)

    return cases(lost, GAINED), cases(FLOOR, GAINED)


def answers(rows: int, weighted: bool, model: str, replications: int) -> dict[str, Counter]:
    """Of each rule, how often its value is on the good side, and what its interval says."""
    rng = np.random.default_rng([rows, weighted, list(MODELS).index(model)])
    bootstrap = BayesianBootstrap(resamples=400)
    layout = TallyLayout(rows=rows, classes=2, scored=(False,) * 3, truth=True,
                         weighted=weighted, pairs=((0, 1), (0, 2)))  # fmt: skip
    statistic = PairStatistic((), True)
    found = {name: Counter() for name in RULES}
    for first in range(0, replications, AT_ONCE):
        samples = min(AT_ONCE, replications - first)
        new, twin = drawn(rng, samples, rows, MODELS[model])
        weights = np.exp(rng.standard_normal((samples, rows)) * weighted)
        sums, floor = (each * weights[..., None] for each in (new, twin))
        about = {
            "heaviest": weights.max(axis=1),
            "inputs": np.full(samples, rows),
            "order": None,
        }
        sampled = bootstrap.sampled(statistic, sums, **about)
        wholes = wholes_of(sampled.values, new.sum(axis=1), weighted=weighted)
        plain = estimates(bootstrap, sampled, wholes)
        relative = multiples(bootstrap, layout, sums, floor, **about)
        for metrics, (beside, multiple) in zip(plain, relative, strict=True):
            for name, fields in RULES.items():
                rule = Rule(**fields, on="bound")
                value, threshold = metrics[rule.metric], rule.threshold
                judged = multiple[rule.metric] if rule.relative_to else value
                asked = threshold * beside["lost"].value if rule.relative_to else threshold
                point = Estimate(value.value, value.value, value.value)
                found[name]["value", answer(rule, point, asked)] += 1
                found[name]["bound", answer(rule, judged, threshold)] += 1
    return found


def by_class(replications: int) -> dict[str, Counter]:
    """With all classes at the threshold, how often any is called worse, or good, or none is."""
    rng = np.random.default_rng(7)
    every = {"metric": "lost", "at_most": 0.05, "on": "bound", "class_name": "*"}
    rules = {
        "each class at 0.95": Rule(**every),
        '`correction = "holm"`': Rule(**every, correction="holm"),
    }

    @functools.cache
    def estimate(cases: int, level: float) -> Estimate:
        ends = clopper_pearson(np.array([cases]), np.array([IN_CLASS]), confidence=level)
        return Estimate(cases / IN_CLASS, *(float(end[0]) for end in ends))

    found = {name: Counter() for name in rules}
    for _ in range(replications):
        cases = rng.binomial(IN_CLASS, 0.05, CLASSES).tolist()
        for name, rule in rules.items():
            made = decide(
                rule,
                [0.05] * CLASSES,
                lambda level, place, cases=cases: estimate(cases[place], level),
            )
            said = {each.answer for each in made}
            found[name].update(said)
            found[name]["none"] += said == {"open"}
    return found


def percent(counts: list[float]) -> str:
    return " · ".join(f"{100 * each:.1f}" for each in counts)


def tables(replications: int) -> Iterator[str]:
    """The documented tables, line by line."""
    cells = {
        (rows, weighted, model): answers(rows, weighted, model, replications)
        for rows, weighted in CELLS
        for model in MODELS
    }

    def shares(name: str, model: str, how: str, *wanted: str) -> str:
        counts = [cells[rows, weighted, model][name] for rows, weighted in CELLS]
        return percent([sum(each[how, one] for one in wanted) / replications for each in counts])

    yield (
        f"Percent of {replications:,} test sets, each of 100 inputs · 1,000 inputs · 1,000 "
        "weighted inputs (σ = 1):"
    )
    yield ""
    yield "| rule | judged by | wrong, at the threshold | passes a good model | fails a bad model |"
    yield "|---|---|---|---|---|"
    for name in RULES:
        for kind, how, wrong, passed in (
            ("value", "value", ("good", "bad"), ("good",)),
            ("bound", "bound", ("good",), ("good",)),
            ('`unresolved = "pass"`', "bound", ("bad",), ("good", "open")),
            ('`unresolved = "report"`', "bound", ("good", "bad"), ("good",)),
        ):
            failed = ("bad", "open") if kind == "bound" else ("bad",)
            err = "–" if kind == "value" else shares(name, "at", how, *wrong)
            power = (shares(name, "good", how, *passed), shares(name, "bad", how, *failed))
            yield f"| {name} | {kind} | {err} | {power[0]} | {power[1]} |"
    yield ""
    yield f"{CLASSES} classes of {IN_CLASS} inputs, each exactly at `lost` = 0.05:"
    yield ""
    yield "| rule on every class | any class called clearly worse | any called clearly good |"
    yield "|---|---|---|"
    for name, found in by_class(replications).items():
        each = [percent([found[what] / replications]) for what in ("bad", "good")]
        yield f"| {name} | {' | '.join(each)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=5000, help="test sets of each cell")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page")
    options = parser.parse_args()
    started = time.process_time()
    text = "\n".join(tables(options.replications))
    print(f"{time.process_time() - started:.0f} s of one core", file=sys.stderr)
    if options.write is None:
        print(text)
        return
    page = options.write.read_text(encoding="utf-8")
    begin, end = MARKS
    pattern = re.compile(f"{begin}.*?{end}", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{options.write} has no place for the tables: {begin} ... {end}")
    page = pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page)
    options.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
