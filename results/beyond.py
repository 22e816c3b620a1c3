"""The tables of docs/beyond.md, docs/one-network.md and docs/distill.md, from the results.

python results/beyond.py          # writes them into the pages
python results/beyond.py --check  # fails if a page is not up to date
"""

# ruff: noqa: E501  lines of the page are longer than lines of code

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent
sys.path.insert(0, str(RESULTS))

import _aims  # noqa: E402  it lies beside this file
import _distilled  # noqa: E402
from _measured import (  # noqa: E402
    Measured,
    control_table,
    differences_table,
    has_labels,
    line,
    percent,
    points,
    values_table,
    verdict,
)
from _seeds import folders, sweeps_of  # noqa: E402
from _swept import new_class_of_carries, new_class_of_margins  # noqa: E402
from dynsnap.comparison import PairedDifference, paired_difference  # noqa: E402
from dynsnap.report import kappa, said_replicates  # noqa: E402
from dynsnap.study import (  # noqa: E402
    FRESH,
    MethodSummary,
    Row,
    frontier,
    missing_rounds,
    read_table,
)

PAGES = [RESULTS.parent / "docs" / name for name in ("beyond.md", "one-network.md", "distill.md")]
_PLACE = re.compile(r"(<!-- (\w+): ([\w -]+?) -->\n).*?(<!-- end -->)", re.DOTALL)

# The target on CIFAR-10, in percent, for at most so many κ per retrain; and ExtBagging's ACC.
TARGET = {"CON": 95.0, "ACC-CON": 86.8, "ACC": 88.8}
TARGET_COST = 1.5
BAGGING = 89.1
VERDICTS = {"no": ["does not qualify"], "open": ["qualifying is open"]}
# Shares of the answers that a fresh network loses, and CON, that one network should reach: without
# a look at deployed answers, and stabilized.
AIMS: dict[str, tuple[tuple[float, float], ...]] = {
    "cifar10-single": ((0.5, 0.25), (89.0, 92.5)),
    "cifar100-single": ((0.55, 0.3),),
}
# The methods of the summary at the top of the page.
SUMMARY = (
    FRESH,
    "rolling",
    "rolling-bagging-refresh",
    "standing",
    f"never-retrain-{FRESH}",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        fresh = filled(text)
        if check and fresh != text:
            raise SystemExit(f"{page.name} is not up to date: run python results/beyond.py.")
        if not check:
            page.write_text(fresh, encoding="utf-8")


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
        "bagging": bagging_lines,
        "accuracy": accuracy_lines,
        "students": student_lines,
        "aims": aim_lines,
    }

    def table(match: re.Match[str]) -> str:
        lines = "\n".join(kinds[match[2]](match[3]))
        return f"{match[1]}\n{lines}\n\n{match[4]}" if lines else f"{match[1]}{match[4]}"

    return _PLACE.sub(table, text)


def summary_lines(studies: str) -> Iterator[str]:
    """The main methods of each study that was run."""
    found = [study for study in studies.split() if has_labels(study, RESULTS)]
    heads = "study | n | method | networks | κ of all | ACC of each generation | new class | lost | CON | ACC-CON | qualifies"
    if found:
        yield f"| {heads} |"
        yield "|---" * 11 + "|"
    for study in found:
        of = _measured(study)
        for name in (one for one in SUMMARY if one in of.methods):
            numbers = range(1, of.labels.generations + 1)
            each = ", ".join(of.cell(name, f"accuracy_{number}") for number in numbers)
            cells = [
                of.cell(name, metric)
                for metric in ("late_accuracy", "lost", "consistency", "correct_consistency")
            ]
            start = [study, str(len(of.labels.replicates(name))), name, of.networks(name)]
            yield line([*start, kappa(of.costs(name)[2]), each, *cells, verdict(of, name)])


def frontier_lines(study: str) -> Iterator[str]:
    """Every method of a study: its metrics and cost, and its differences from fair references."""
    if not has_labels(study, RESULTS):
        yield f"*`dynsnap run {study}` has not been run yet.*"
        return
    of = _measured(study)
    yield from values_table(of, of.methods)
    yield ""
    yield "Differences in points, with 95 % intervals:"
    yield ""
    yield from differences_table(of, of.methods)
    if control := list(control_table(of, of.methods)):
        yield ""
        yield "Minus a network from scratch with as many epochs as the whole chain:"
        yield ""
        yield from control
    yield ""
    yield _about(study)


_KNOWN: dict[Path, Measured] = {}


def _measured(study: str) -> Measured:
    """A study, read once for each folder of results."""
    folder = RESULTS / study
    if folder not in _KNOWN:
        _KNOWN[folder] = Measured(folder)
    return _KNOWN[folder]


def bagging_lines(studies: str) -> Iterator[str]:
    """Rolling bagging with fine-tuning, minus bagging that is trained afresh every time."""
    mine, theirs = studies.split()
    if not (has_labels(mine, RESULTS) and has_labels(theirs, RESULTS)):
        return
    name, other = "rolling-bagging-refresh", "extbagging"
    of, fresh = _measured(mine), _measured(theirs)
    later = range(2, of.labels.generations + 1)
    metrics = {f"accuracy_{n}": f"ACC {n}" for n in later}
    metrics |= {
        "late_accuracy": "new class",
        "consistency": "CON",
        "correct_consistency": "ACC-CON",
        "lost": "lost",
    }
    yield f"| `{mine}` | networks | κ of all | {' | '.join(metrics.values())} |"
    yield "|---" * (3 + len(metrics)) + "|"
    for label, where, method in (
        (name, of, name),
        (f"fresh bagging (`{theirs}`)", fresh, other),
        (f"never-retrain-{name}", of, f"never-retrain-{name}"),
    ):
        cost = of.costs(name)[0] if method.startswith("never") else where.costs(method)[2]
        cells = [where.cell(method, metric) for metric in metrics]
        yield line([label, where.networks(method), kappa(cost), *cells])
    gaps = [of.labels.difference(name, other, metric, elsewhere=fresh.labels) for metric in metrics]
    yield line(["difference from fresh bagging", "", "", *map(points, gaps)])
    own = [of.labels.difference(name, f"never-retrain-{name}", metric) for metric in metrics]
    yield line(["difference from its own first generation", "", "", *map(points, own)])
    last = f"accuracy_{of.labels.generations}"
    first, final = (of.labels.values(name, metric) for metric in ("accuracy_1", last))
    gained = sum(int((~first[r] & final[r]).sum()) for r in first)
    lost = sum(int((first[r] & ~final[r]).sum()) for r in first)
    yield ""
    yield (
        f"From generation 1 to {of.labels.generations} `{name}` gains {gained:,} inputs and loses {lost:,}, "
        f"all {len(first)} replicates together: {points(own[len(later) - 1])} points. The same inputs are in every replicate, which this interval allows for."
    )


def accuracy_lines(studies: str) -> Iterator[str]:
    """Stabilized answers minus the same answers as they are, and minus what is never retrained."""
    found = [study for study in studies.split() if has_labels(study, RESULTS)]
    if found:
        yield "| study | n | stabilized | minus | ACC, later generations | new class | lost |"
        yield "|---" * 7 + "|"
    for study in found:
        of = _measured(study)
        for name, plain in (("standing", FRESH), ("singlebase-standing", "singlebase")):
            if name in of.methods:
                yield from (
                    _stabilized(of, name, reference)
                    for reference in (plain, f"never-retrain-{plain}")
                )


def _stabilized(of: Measured, name: str, reference: str) -> str:
    later = _later(of, name, reference)
    rest = [of.labels.difference(name, reference, one) for one in ("late_accuracy", "lost")]
    return line([of.name, str(later.replicates), name, reference, *map(points, [later, *rest])])


def _later(of: Measured, name: str, other: str) -> PairedDifference:
    """The difference in accuracy over all generations but the first."""
    numbers = range(2, of.labels.generations + 1)
    sides = [
        np.stack(
            [
                np.mean([of.labels.values(one, f"accuracy_{n}")[r] for n in numbers], axis=0)
                for r in of.labels.replicates(name)
            ]
        )
        for one in (name, other)
    ]
    return paired_difference(*sides)


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
            accuracies = [percent(row) for row in one.accuracies]
            late, cost = percent(one.late), _cost(one)
            yield "| " + " | ".join([one.method, *accuracies, late, cost]) + " |"
    yield ""
    yield from _against_fresh(study, summaries)
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


def _against_fresh(study: str, summaries: Sequence[MethodSummary]) -> Iterator[str]:
    """The gap between rolling and fresh ensembles, generation by generation, and the verdicts."""
    found = {one.method: [row.value for row in one.accuracies] for one in summaries}
    numbers = range(2, len(found[FRESH]) + 1)
    of = _measured(study) if has_labels(study, RESULTS) else None
    yield ""
    yield f"Accuracy minus that of {FRESH}, in points:"
    yield ""
    yield line(["method", *map(str, numbers), *(["qualifies"] if of else [])])
    yield "|---" * (len(numbers) + 1 + bool(of)) + "|"
    for method in found:
        if not method.startswith("rolling"):
            continue
        if of is None:
            gaps = [found[method][place - 1] - found[FRESH][place - 1] for place in numbers]
            yield line([method, *(f"{100 * gap:+.1f}" for gap in gaps)])
        else:
            each = [of.labels.difference(method, FRESH, f"accuracy_{place}") for place in numbers]
            yield line([method, *map(points, each), verdict(of, method)])


def swept_lines(varied: str, studies: str, *, costs: bool = False) -> Iterator[str]:
    """The metrics of each value of a setting that studies have varied; and the cost."""
    metrics = {
        "accuracy": "ACC",
        "consistency": "CON",
        "correct_consistency": "ACC-CON",
        "lost": "lost",
    }
    found = {study: rows for study in studies.split() if (rows := sweeps_of(RESULTS / study))}
    if found:
        heads = ["study", varied, *metrics.values(), *(["κ"] if costs else []), "new class"]
        heads += [] if costs else ["n of that", "new class, minus margin 0"]
        yield f"| {' | '.join(heads)} |"
        yield "|---" * len(heads) + "|"
    for study, points_of in found.items():
        swept: dict[str, dict[str, Row]] = {}
        for one in points_of:
            if one.over == varied:  # a study may vary more
                swept.setdefault(one.point, {})[one.row.metric] = one.row
        new = _new_classes(study, swept, costs=costs)
        for point, rows in swept.items():
            cells = [percent(rows[metric]) for metric in metrics]
            cells += [kappa(rows["accuracy"].cost)] if costs else []
            yield f"| {study} | {point} | {' | '.join([*cells, *new[point]])} |"
        yield from _never(study, costs=costs)


def _new_classes(
    study: str, swept: Mapping[str, Mapping[str, Row]], *, costs: bool
) -> Mapping[str, Sequence[str]]:
    if not has_labels(study, RESULTS):
        return {point: [""] if costs else ["", "", ""] for point in swept}
    of = _measured(study)
    return new_class_of_carries(of, swept) if costs else new_class_of_margins(of, swept)


def _never(study: str, *, costs: bool) -> Iterator[str]:
    """The fresh ensemble's first generation, kept."""
    if not was_run(study) or f"never-retrain-{FRESH}" not in summaries(study):
        return
    one = summaries(study)[f"never-retrain-{FRESH}"]
    cells = [
        percent(row) for row in (one.accuracy, one.consistency, one.correct_consistency, one.lost)
    ]
    cells += [kappa(one.accuracy.cost)] if costs else []
    cells += [percent(one.late)] if costs else [percent(one.late, spread=False), "", ""]
    yield f"| {study} | never retrain | {' | '.join(cells)} |"


def target_lines(study: str) -> Iterator[str]:
    """The target, what reaches it, and beside it the fresh ensemble, retrained and never retrained."""
    if not was_run(study):
        return
    found = summaries(study)
    shown = [*reached(study), FRESH, f"never-retrain-{FRESH}"]
    yield f"| | target | {' | '.join(f'`{name}`' for name in shown)} |"
    yield "|---" * (len(shown) + 2) + "|"
    for name, aim in TARGET.items():
        cells = [percent(row, places=2) for row in _aimed(found, shown, name)]
        yield f"| {name} | at least {aim:g} | {' | '.join(cells)} |"
    late = [percent(found[method].late, places=2) for method in shown]
    yield f"| accuracy on the new class |  | {' | '.join(late)} |"
    limit = f"at most {TARGET_COST:g}"
    costs = (
        ("the first generation", "", _first),
        ("a retrain", limit, _retrain),
        ("all generations", "", _total),
    )
    for name, aimed, cost in costs:
        cells = [kappa(cost(found[method])) for method in shown]
        yield f"| cost of {name} (κ) | {aimed} | {' | '.join(cells)} |"
    if not reached(study):
        yield ""
        yield "No rolling method reaches the target:"
        yield ""
        for one in found.values():
            if one.method.startswith("rolling"):
                said = [*_missed(one), *VERDICTS.get(one.verdict, ())]
                yield f"* `{one.method}`: {', '.join(said)}"
    by = [f"`{name}`" for name in reached(study) if 100 * found[name].accuracy.value >= BAGGING]
    yield ""
    yield f"ExtBagging's accuracy in the paper (ACC ≥ {BAGGING:g}): reached by {', '.join(by) or 'none'}."


def summaries(study: str) -> dict[str, MethodSummary]:
    """The methods of a study, by name."""
    if has_labels(study, RESULTS):
        return _measured(study).methods
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
    return _distilled.compared(RESULTS / study, _references(study, f"never-retrain-{FRESH}"))


def student_lines(study: str) -> Iterator[str]:
    """Students of `dynsnap distill --json`, with their teacher and what is never retrained."""
    references = _references(study, f"never-retrain-{FRESH}", "noise-floor")
    return _distilled.students(RESULTS / study, references)


def _references(study: str, *names: str) -> list[_distilled.StudyRow]:
    """Rows of a study's own table, where it was run."""
    found = summaries(study) if was_run(study) else {}
    return [
        _distilled.StudyRow(found[name], _measured(study).networks(name))
        for name in names
        if name in found
    ]


def aim_lines(study: str) -> Iterator[str]:
    """What one network was meant to reach, and what it reached."""
    return _aims.lines(_measured(study), *AIMS[study])


def waiting_lines(studies: str) -> Iterator[str]:
    """Which of these studies have not been run."""
    if waiting := [f"`{name}`" for name in studies.split() if not was_run(name)]:
        yield f"Not run yet: {', '.join(waiting)}."


def was_run(study: str) -> bool:
    """Whether there are results of a study."""
    return (RESULTS / study / "table.csv").is_file()


def _cost(one: MethodSummary) -> str:
    if one.retrain is None:
        return ""
    return kappa(one.retrain.value)


def _own_replicates(study: str) -> dict[str, int]:
    """How many replicates each method has; a dear one may have fewer than the study."""
    if not has_labels(study, RESULTS):
        return {}
    labels = _measured(study).labels
    return {name: len(labels.replicates(name)) for name in labels.methods}


def _about(study: str) -> str:
    seeds = [json.loads((one / "about.json").read_text()) for one in folders(RESULTS / study)]
    about = seeds[0]
    replicates, rounds, seconds = (
        sum(one[key] for one in seeds) for key in ("replicates", "rounds", "training_seconds")
    )
    said = said_replicates(replicates, _own_replicates(study))
    spread = " ± is the standard deviation over replicates." if replicates > 1 else ""
    missing = sum(one.get("rounds_missing") or 0 for one in seeds)
    more = f" ({missing_rounds(missing, more=True)}, and so is what needs them)" if missing else ""
    return (
        f"{about['test_inputs']:,} test inputs, {said}, {rounds} rounds{more}, {seconds:.0f} s of "
        f"training on {about['environment'].get('device', 'cpu')}.{spread} Repeat: `dynsnap run {study}`."
    )


if __name__ == "__main__":
    main()
