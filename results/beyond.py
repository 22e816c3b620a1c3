"""The tables of docs/beyond.md, from the results beside this file.

python results/beyond.py          # writes them into the page
python results/beyond.py --check  # says whether the page is up to date
"""

# ruff: noqa: E501  the page's own sentences are as long as those of other pages

import argparse
import csv
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from dynsnap.report import frontier_table, kappa, markdown_table
from dynsnap.study import MethodSummary, Row, frontier, missing_rounds, read_sweeps, read_table

RESULTS = Path(__file__).parent
PAGE = RESULTS.parent / "docs" / "beyond.md"
_PLACE = re.compile(r"(<!-- (\w+): ([\w -]+?) -->\n).*?(<!-- end -->)", re.DOTALL)

# What is aimed at on CIFAR-10, in percent, for at most so many κ a retrain; and ExtBagging's ACC.
TARGET = {"CON": 95.0, "ACC-CON": 86.8, "ACC": 88.8}
TARGET_COST = 1.5
BAGGING = 89.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    text = PAGE.read_text(encoding="utf-8")
    fresh = filled(text)
    if parser.parse_args().check:
        raise SystemExit(0 if fresh == text else f"{PAGE.name} is not what the results say.")
    PAGE.write_text(fresh, encoding="utf-8")


def filled(text: str) -> str:
    """The page with the tables that the results give now."""
    kinds = {
        "frontier": frontier_lines,
        "says": says_lines,
        "target": target_lines,
        "margins": partial(swept_lines, "margin"),
        "carries": partial(swept_lines, "carry", costs=True),
        "stream": stream_lines,
        "distilled": distilled_lines,
        "waiting": waiting_lines,
    }

    def table(match: re.Match[str]) -> str:
        lines = "\n".join(kinds[match[2]](match[3]))
        return f"{match[1]}\n{lines}\n\n{match[4]}" if lines else f"{match[1]}{match[4]}"

    return _PLACE.sub(table, text)


def frontier_lines(study: str) -> Iterator[str]:
    """Every method of a study, with all that it gives and takes."""
    if not was_run(study):
        yield f"*`dynsnap run {study}` has not been run yet.*"
        return
    found = frontier(read_table(RESULTS / study / "table.csv"))
    yield markdown_table(frontier_table(found, annotated=True))
    yield ""
    yield _about(study)


def stream_lines(study: str) -> Iterator[str]:
    """Accuracy generation by generation, and consistency with the one before and the first."""
    if not was_run(study):
        yield f"*`dynsnap run {study}` has not been run yet.*"
        return
    summaries = frontier(read_table(RESULTS / study / "table.csv"))
    generations = max(len(one.accuracies) for one in summaries)
    each = " | ".join(str(number) for number in range(1, generations + 1))
    yield f"| method | {each} | new class | κ of a retrain |"
    yield "|---" * (generations + 3) + "|"
    for one in summaries:
        if one.accuracies:
            accuracies = [_percent(row) for row in one.accuracies]
            late, cost = _percent(one.late, spread=False), _cost(one)
            yield "| " + " | ".join([one.method, *accuracies, late, cost]) + " |"
    yield ""
    yield from _after_the_change(summaries)
    path = RESULTS / study / "consistency.csv"
    if not path.is_file():
        yield f"*`python results/consistency.py results/{study} results/{study}/{path.name}` has not been run yet.*"
        yield ""
        yield _about(study)
        return
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for kind in ("previous", "first"):
        yield ""
        yield f"CON with the {kind} generation:"
        yield ""
        yield f"| method | {' | '.join(str(number) for number in range(2, generations + 1))} |"
        yield "|---" * generations + "|"
        for method in dict.fromkeys(row["method"] for row in rows):
            values = {
                int(row["generation"]): f"{100 * float(row['value']):.1f}"
                for row in rows
                if row["method"] == method and row["to"] == kind
            }
            yield f"| {method} | " + " | ".join(values[number] for number in sorted(values)) + " |"
    yield ""
    yield _about(study)


def _after_the_change(summaries: Sequence[MethodSummary]) -> Iterator[str]:
    """How far rolling ensembles are from a fresh one, from the generation that changed most on."""
    found = {one.method: [row.value for row in one.accuracies] for one in summaries}
    fresh = found["dynsnap-cyc"]
    steps = [new - old for old, new in itertools.pairwise(fresh)]
    change = steps.index(max(steps)) + 1  # its place among the generations, from 0
    numbers = range(change + 1, len(fresh) + 1)
    yield ""
    yield f"Points of accuracy above (+) or below dynsnap-cyc, from the change in generation {change + 1} on:"
    yield ""
    yield f"| method | {' | '.join(map(str, numbers))} |"
    yield "|---" * (len(numbers) + 1) + "|"
    for method, values in found.items():
        if method.startswith("rolling"):
            gaps = [f"{100 * (values[i] - fresh[i]):+.1f}" for i in range(change, len(fresh))]
            yield f"| {method} | {' | '.join(gaps)} |"


def swept_lines(varied: str, studies: str, *, costs: bool = False) -> Iterator[str]:
    """What comes of each value of a setting that studies have varied; and what it costs."""
    metrics = {
        "accuracy": "ACC",
        "consistency": "CON",
        "correct_consistency": "ACC-CON",
        "lost": "lost",
    }
    paths = {study: RESULTS / study / "sweeps.csv" for study in studies.split()}
    paths = {study: path for study, path in paths.items() if path.is_file()}
    if paths:
        heads = ["study", varied, *metrics.values(), *(["κ"] if costs else [])]
        yield f"| {' | '.join(heads)} |"
        yield "|---" * len(heads) + "|"
    for study, path in paths.items():
        points: dict[str, dict[str, Row]] = {}
        for one in read_sweeps(path):
            if one.over == varied:  # a study may vary more
                points.setdefault(one.point, {})[one.row.metric] = one.row
        for point, rows in points.items():
            cells = [_percent(rows[metric]) for metric in metrics]
            cells += [kappa(rows["accuracy"].cost)] if costs else []
            yield f"| {study} | {point} | {' | '.join(cells)} |"


def says_lines(study: str) -> Iterator[str]:
    """In a sentence, what the default gives and takes, held against a fresh ensemble."""
    if not was_run(study):
        return
    found = {one.method: one for one in frontier(read_table(RESULTS / study / "table.csv"))}
    fresh, rolling = found["dynsnap-cyc"], found["rolling"]
    gap = 100 * (rolling.accuracies[-1].value - fresh.accuracies[-1].value)
    verdict = "It qualifies" if rolling.qualifies else f"It does not qualify ({rolling.shortfall})"
    yield (
        f"In `{study}` the default loses {_percent(rolling.lost)} % of the answers in a retrain, a "
        f"fresh ensemble {_percent(fresh.lost)} %, for {_cost(rolling)} κ instead of {_cost(fresh)}. CON is "
        f"{_percent(rolling.consistency)} against {_percent(fresh.consistency)}, ACC-CON "
        f"{_percent(rolling.correct_consistency)} against {_percent(fresh.correct_consistency)}. Its last "
        f"generation is {gap:+.1f} points from the fresh one's, and answers {_percent(rolling.late)} % of the "
        f"new class, the fresh one {_percent(fresh.late)} %. {verdict}."
    )


def target_lines(study: str) -> Iterator[str]:
    """Whether any method reaches what was aimed at."""
    if not was_run(study):
        return
    aims = ", ".join(f"{name} ≥ {value:g}" for name, value in TARGET.items())
    rolling = [
        one
        for one in frontier(read_table(RESULTS / study / "table.csv"))
        if one.method.startswith("rolling")
    ]
    reached = [one for one in rolling if one.qualifies and not _missed(one)]
    yield f"What was aimed at among methods that qualify: {aims} for at most {TARGET_COST:g} κ a retrain."
    if reached:
        yield f"Reached by {', '.join(f'`{one.method}`' for one in reached)}."
    else:
        yield "Reached by none:"
        yield ""
        for one in rolling:
            said = _missed(one) + ([] if one.qualifies else ["it does not qualify"])
            yield f"* `{one.method}`: {', '.join(said)}"
        yield ""
    beyond = [one for one in reached if 100 * one.accuracy.value >= BAGGING]
    by = ", ".join(f"`{one.method}`" for one in beyond) or "none"
    yield f"And beyond it, the accuracy of ExtBagging in the paper (ACC ≥ {BAGGING:g}): reached by {by}."


def _missed(one: MethodSummary) -> list[str]:
    """Which of the aims a method misses, with what it has instead."""
    values = {"CON": one.consistency, "ACC-CON": one.correct_consistency, "ACC": one.accuracy}
    missed = [
        f"{name} {100 * row.value:.2f}"
        for name, row in values.items()
        if row is not None and 100 * row.value < TARGET[name]
    ]
    return missed + ([f"{kappa(one.cost)} κ"] if one.cost > TARGET_COST else [])


def distilled_lines(study: str) -> Iterator[str]:
    """What is left of an ensemble in one network, as `dynsnap distill --json` has found."""
    paths = sorted((RESULTS / study).glob("distill*.json"))
    if not paths:
        yield f"*`dynsnap distill {study}` has not been run yet.*"
        return
    metrics = {
        "accuracy": "ACC",
        "consistency": "CON",
        "correct_consistency": "ACC-CON",
        "lost": "lost",
        "late_accuracy": "new class",
    }
    yield f"| `{study}` | networks | κ | {' | '.join(metrics.values())} |"
    yield "|---" * (len(metrics) + 3) + "|"
    shown: set[str] = set()
    for path in paths:
        for one in json.loads(path.read_text(encoding="utf-8"))["learners"]:
            if one["name"] not in shown:  # every file has the teacher too
                shown.add(one["name"])
                cells = [_measured(one["metrics"].get(name)) for name in metrics]
                head = f"| {one['name']} | {one['networks']} | {kappa(one['cost'])}"
                yield f"{head} | {' | '.join(cells)} |"


def _measured(found: dict[str, float | None] | None) -> str:
    if found is None or found["value"] is None:
        return ""
    around = "" if found["spread"] is None else f" ± {100 * found['spread']:.1f}"
    return f"{100 * found['value']:.1f}{around}"


def waiting_lines(studies: str) -> Iterator[str]:
    """Which of these studies have not been run."""
    if waiting := [f"`{name}`" for name in studies.split() if not was_run(name)]:
        yield f"Not run yet: {', '.join(waiting)}."


def was_run(study: str) -> bool:
    """Whether there are results of a study."""
    return (RESULTS / study / "table.csv").is_file()


def _percent(row: Row | None, *, spread: bool = True) -> str:
    if row is None:
        return ""
    around = f" ± {100 * row.spread:.1f}" if spread and row.spread is not None else ""
    return f"{100 * row.value:.1f}{around}"


def _cost(one: MethodSummary) -> str:
    if one.retrain is None:
        return ""
    return kappa(one.retrain.value)


def _about(study: str) -> str:
    about = json.loads((RESULTS / study / "about.json").read_text())
    often = about["replicates"]
    replicates = (
        f"{often} replicates (± is their standard deviation)" if often > 1 else "1 replicate"
    )
    missing = about.get("rounds_missing")
    more = f" ({missing_rounds(missing, more=True)}, and what needs them)" if missing else ""
    return (
        f"{about['test_inputs']:,} test inputs, {replicates}, {about['rounds']} rounds{more}, {about['training_seconds']:.0f} s of "
        f"training on {about['environment'].get('device', 'cpu')}. Repeat: `dynsnap run {study}`."
    )


if __name__ == "__main__":
    main()
