"""The tables of docs/beyond.md, from the results beside this file.

python results/beyond.py          # writes them into the page
python results/beyond.py --check  # fails if the page is not up to date
"""

# ruff: noqa: E501  lines of the page are longer than lines of code

import argparse
import csv
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from dynsnap.report import frontier_table, kappa, markdown_table
from dynsnap.study import (
    FRESH,
    MethodSummary,
    Row,
    frontier,
    missing_rounds,
    read_sweeps,
    read_table,
)

RESULTS = Path(__file__).parent
PAGE = RESULTS.parent / "docs" / "beyond.md"
_PLACE = re.compile(r"(<!-- (\w+): ([\w -]+?) -->\n).*?(<!-- end -->)", re.DOTALL)

# The target on CIFAR-10, in percent, for at most so many κ per retrain; and ExtBagging's ACC.
TARGET = {"CON": 95.0, "ACC-CON": 86.8, "ACC": 88.8}
TARGET_COST = 1.5
BAGGING = 89.1
# The methods of the summary at the top of the page.
SUMMARY = (FRESH, "rolling", "rolling-bagging-refresh", "standing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    text = PAGE.read_text(encoding="utf-8")
    fresh = filled(text)
    if parser.parse_args().check:
        raise SystemExit(
            0 if fresh == text else f"{PAGE.name} is not up to date: run python results/beyond.py."
        )
    PAGE.write_text(fresh, encoding="utf-8")


def filled(text: str) -> str:
    """The page with the tables of the current results."""
    kinds = {
        "summary": summary_lines,
        "frontier": frontier_lines,
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


def summary_lines(studies: str) -> Iterator[str]:
    """The main methods of each study that was run."""
    heads = "last ACC | CON | ACC-CON | lost | new class | retrain (κ) | qualifies"
    found = {study: summaries(study) for study in studies.split() if was_run(study)}
    if found:
        yield f"| study | method | {heads} |"
        yield "|---" * 9 + "|"
    for study, methods in found.items():
        for one in (methods[name] for name in SUMMARY if name in methods):
            rows = (
                one.accuracies[-1],
                one.consistency,
                one.correct_consistency,
                one.lost,
                one.late,
            )
            cells = [_percent(row) for row in rows]
            verdict = ("yes" if one.qualifies else "no") if one.judged else "(reference)"
            yield f"| {study} | {one.method} | {' | '.join([*cells, _cost(one), verdict])} |"


def frontier_lines(study: str) -> Iterator[str]:
    """Every method of a study, with its metrics and its cost."""
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
    yield f"| method | {each} | new class | retrain (κ) |"
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
    """The gap between rolling and fresh ensembles, from the generation that changed most on."""
    found = {one.method: [row.value for row in one.accuracies] for one in summaries}
    fresh = found["dynsnap-cyc"]
    steps = [new - old for old, new in itertools.pairwise(fresh)]
    change = steps.index(max(steps)) + 1  # its place among the generations, from 0
    numbers = range(change + 1, len(fresh) + 1)
    yield ""
    yield f"Accuracy minus that of dynsnap-cyc, in points, from the abrupt shift in generation {change + 1} on:"
    yield ""
    yield f"| method | {' | '.join(map(str, numbers))} |"
    yield "|---" * (len(numbers) + 1) + "|"
    for method, values in found.items():
        if method.startswith("rolling"):
            gaps = [f"{100 * (values[i] - fresh[i]):+.1f}" for i in range(change, len(fresh))]
            yield f"| {method} | {' | '.join(gaps)} |"


def swept_lines(varied: str, studies: str, *, costs: bool = False) -> Iterator[str]:
    """The metrics of each value of a setting that studies have varied; and the cost."""
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


def target_lines(study: str) -> Iterator[str]:
    """The target, the methods that reach it, and the fresh ensemble beside them."""
    if not was_run(study):
        return
    found = summaries(study)
    shown = [*reached(study), FRESH]
    yield f"| | target | {' | '.join(f'`{name}`' for name in shown)} |"
    yield "|---" * (len(shown) + 2) + "|"
    for name, aim in TARGET.items():
        cells = [f"{100 * row.value:.2f}{_interval(row)}" for row in _aimed(found, shown, name)]
        yield f"| {name} (95 % interval) | at least {aim:g} | {' | '.join(cells)} |"
    limit = f"at most {TARGET_COST:g}"
    costs = (
        ("the first generation", "", _first),
        ("a retrain", limit, _retrain),
        ("all generations", "", _total),
    )
    for name, aimed, cost in costs:
        cells = [kappa(cost(found[method])) for method in shown]
        yield f"| cost of {name} (κ) | {aimed} | {' | '.join(cells)} |"
    if len(shown) == 1:
        yield ""
        yield "No rolling method reaches the target:"
        yield ""
        for one in found.values():
            if one.method.startswith("rolling"):
                said = _missed(one) + ([] if one.qualifies else ["does not qualify"])
                yield f"* `{one.method}`: {', '.join(said)}"
    by = [f"`{name}`" for name in reached(study) if 100 * found[name].accuracy.value >= BAGGING]
    yield ""
    yield f"ExtBagging's accuracy in the paper (ACC ≥ {BAGGING:g}): reached by {', '.join(by) or 'none'}."


def summaries(study: str) -> dict[str, MethodSummary]:
    """The methods of a study, by name."""
    return {one.method: one for one in frontier(read_table(RESULTS / study / "table.csv"))}


def reached(study: str) -> list[str]:
    """The rolling methods that qualify and reach the target."""
    return [
        name
        for name, one in summaries(study).items()
        if name.startswith("rolling") and one.qualifies and not _missed(one)
    ]


def _aimed(found: dict[str, MethodSummary], shown: Sequence[str], name: str) -> Iterator[Row]:
    for method in shown:
        one = found[method]
        row = {"CON": one.consistency, "ACC-CON": one.correct_consistency}.get(name, one.accuracy)
        assert row is not None
        yield row


def _interval(row: Row) -> str:
    if row.low is None or row.high is None:
        return ""
    return f" ({100 * row.low:.1f} to {100 * row.high:.1f})"


def _retrain(one: MethodSummary) -> float:
    return one.cost


def _total(one: MethodSummary) -> float:
    """The cost of all generations: a table has their mean."""
    return len(one.accuracies) * one.accuracy.cost


def _first(one: MethodSummary) -> float:
    return _total(one) - (len(one.accuracies) - 1) * one.cost


def _missed(one: MethodSummary) -> list[str]:
    """The parts of the target that a method misses, with its own values."""
    values = {"CON": one.consistency, "ACC-CON": one.correct_consistency, "ACC": one.accuracy}
    missed = [
        f"{name} {100 * row.value:.2f}"
        for name, row in values.items()
        if row is not None and 100 * row.value < TARGET[name]
    ]
    return missed + ([f"{kappa(one.cost)} κ"] if one.cost > TARGET_COST else [])


def distilled_lines(study: str) -> Iterator[str]:
    """An ensemble and the network distilled from it, as `dynsnap distill --json` wrote them."""
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
    more = (
        f" ({missing_rounds(missing, more=True)}, and so are the rows that need them)"
        if missing
        else ""
    )
    return (
        f"{about['test_inputs']:,} test inputs, {replicates}, {about['rounds']} rounds{more}, {about['training_seconds']:.0f} s of "
        f"training on {about['environment'].get('device', 'cpu')}. Repeat: `dynsnap run {study}`."
    )


if __name__ == "__main__":
    main()
