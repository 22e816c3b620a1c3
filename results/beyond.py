"""The tables of docs/beyond.md, from the results beside this file.

python results/beyond.py          # writes them into the page
python results/beyond.py --check  # says whether the page is up to date
"""

import argparse
import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

from dynsnap.study import Row, Standing, frontier, read_table

RESULTS = Path(__file__).parent
PAGE = RESULTS.parent / "docs" / "beyond.md"
_PLACE = re.compile(r"(<!-- (\w+): ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


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
    kinds = {"frontier": frontier_lines, "stream": stream_lines}

    def table(match: re.Match[str]) -> str:
        lines = "\n".join(kinds[match[2]](match[3]))
        return f"{match[1]}\n{lines}\n\n{match[4]}"

    return _PLACE.sub(table, text)


def frontier_lines(study: str) -> Iterator[str]:
    """Every method of a study, with all that it gives and takes."""
    if not (RESULTS / study).is_dir():
        yield f"*`dynsnap run {study}` has not been run yet.*"
        return
    standings = frontier(read_table(RESULTS / study / "table.csv"))
    generations = max(len(one.accuracies) for one in standings)
    each = " | ".join(f"ACC {number}" for number in range(1, generations + 1))
    more = "CON | ACC-CON | gained | lost | late class | κ of a retrain | counts"
    yield f"| method | {each} | {more} |"
    yield "|---" * (generations + 8) + "|"
    for one in standings:
        yield "| " + " | ".join(_cells(one, generations)) + " |"
    yield ""
    yield _about(study)


def stream_lines(study: str) -> Iterator[str]:
    """Accuracy generation by generation, and consistency with the one before and the first."""
    if not (RESULTS / study).is_dir():
        yield f"*`dynsnap run {study}` has not been run yet.*"
        return
    standings = frontier(read_table(RESULTS / study / "table.csv"))
    generations = max(len(one.accuracies) for one in standings)
    each = " | ".join(str(number) for number in range(1, generations + 1))
    yield f"| method | {each} | late class | κ of a retrain |"
    yield "|---" * (generations + 3) + "|"
    for one in standings:
        if one.accuracies:
            accuracies = [_percent(row) for row in one.accuracies]
            late, cost = _percent(one.late, spread=False), _cost(one)
            yield "| " + " | ".join([one.method, *accuracies, late, cost]) + " |"
    yield ""
    with (RESULTS / study / "consistency.csv").open(newline="") as file:
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


def _cells(one: Standing, generations: int) -> Iterator[str]:
    yield one.method
    accuracies = [_percent(row) for row in one.accuracies]
    yield from accuracies + [""] * (generations - len(accuracies))
    for row in (one.consistency, one.correct_consistency, one.gained, one.lost, one.late):
        yield _percent(row)
    yield _cost(one)
    yield ("yes" if one.counts else f"no: {one.lacks}") if one.judged else ""


def _percent(row: Row | None, *, spread: bool = True) -> str:
    if row is None:
        return ""
    around = f" ± {100 * row.spread:.1f}" if spread and row.spread is not None else ""
    return f"{100 * row.value:.1f}{around}"


def _cost(one: Standing) -> str:
    return "" if one.retrain is None else f"{one.retrain.value:.1f}"


def _about(study: str) -> str:
    about = json.loads((RESULTS / study / "about.json").read_text())
    return (
        f"{about['test_inputs']:,} test inputs, {about['replicates']} replicates (± is their "
        f"standard deviation), {about['rounds']} rounds, {about['training_seconds']:.0f} s of "
        f"training on {about['environment'].get('device', 'cpu')}. Repeat: `dynsnap run {study}`."
    )


if __name__ == "__main__":
    main()
