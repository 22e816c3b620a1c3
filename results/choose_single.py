"""The choice of what `single` does, on held-out rows: never on rows that are reported.

python results/choose_single.py          # writes the table of docs/one-network.md
python results/choose_single.py --check  # fails if the page is not up to date

Each study has a heldout.csv, which `results/heldout.py RUN --csv` writes: values on the selection
holdout, rows that no network of any generation was trained on and that are no test rows. Of the
candidates that all studies have, the one is chosen that loses least, as a share of what a fresh
network loses, and that is not clearly worse elsewhere: see `refused`.
"""

import argparse
import csv
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parent
PAGE = RESULTS.parent / "docs" / "one-network.md"
STUDIES = ("digits-single", "20news-single", "cifar10-single")
FRESH = "singlebase"
# Methods that retrain from the deployed network at the price of one training, before any rule
# changes their labels. Controls and anchors are not among them.
CANDIDATES = (
    "single",
    "single-warm",
    "single-distill",
    "single-new-1",
    "single-0.8",
    "single-quarter",
    "single-right",
    "single-wrong",
    "single-low-rate",
    "single-interpolated",
)
COST = 1.1  # κ of a retrain, at most
KEPT = 0.97  # of a fresh network's accuracy on the new class, the least
_PLACE = re.compile(r"(<!-- choice -->\n).*?(<!-- end -->)", re.DOTALL)


class Values(NamedTuple):
    """The mean over replicates, and their standard deviation."""

    mean: float
    spread: float

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.spread:.1f}"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A method on the held-out rows of one study.

    Attributes:
        cost: κ of a retrain.
        last: Accuracy of the last generation.
        lost: Right answers that a retrain loses.
        new: Accuracy of the last generation on the new class.
        last_error: Standard error over replicates of `last` minus a fresh network's.
        new_error: The same of `new`, minus the share of it that is to be kept.
    """

    cost: float
    last: Values
    lost: Values
    new: Values
    last_error: float
    new_error: float

    def cells(self) -> tuple[str, str, str]:
        """What the table has of it, in percent."""
        return str(self.lost), str(self.last), str(self.new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    text = PAGE.read_text(encoding="utf-8")
    fresh = _PLACE.sub(lambda match: f"{match[1]}\n{chr(10).join(lines())}\n\n{match[2]}", text)
    if check and fresh != text:
        raise SystemExit(f"{PAGE.name} is not up to date: run python results/choose_single.py.")
    if not check:
        PAGE.write_text(fresh, encoding="utf-8")


def lines() -> Iterator[str]:
    """The candidates, what each loses of what a fresh network loses, and the choice."""
    studies = {name: read(name) for name in STUDIES if (RESULTS / name / "heldout.csv").is_file()}
    shares = {
        name: [one[name].lost.mean / one[FRESH].lost.mean for one in studies.values()]
        for name in CANDIDATES
        if all(name in one for one in studies.values())
    }
    heads = [f"{each}: {what}" for each in studies for what in ("lost", "ACC 3", "new class")]
    yield f"| candidate | lost, of fresh | {' | '.join(heads)} | not chosen because |"
    yield "|---" * (len(heads) + 3) + "|"
    able = []
    for name, share in sorted(shares.items(), key=lambda item: statistics.mean(item[1])):
        reasons = [why for study, one in studies.items() for why in refused(study, one, name)]
        if not reasons:
            able.append(name)
        cells = [cell for one in studies.values() for cell in one[name].cells()]
        start = [f"`{name}`", f"{statistics.mean(share):.2f}", *cells, "; ".join(reasons)]
        yield f"| {' | '.join(start)} |"
    fresh = [cell for one in studies.values() for cell in one[FRESH].cells()]
    yield f"| {FRESH} | 1.00 | {' | '.join(fresh)} | the fresh network |"
    yield ""
    chosen = f"`{able[0]}` loses least of those that remain" if able else "No candidate remains"
    missing = [name for name in STUDIES if name not in studies]
    later = f" Held-out rows of {', '.join(missing)} are still to come." if missing else ""
    yield f"{chosen}.{later}"


def refused(study: str, found: dict[str, HeldOut], name: str) -> Iterator[str]:
    """Why a candidate is not chosen: it is dear, or clearly worse than a fresh network.

    "Clearly" is by more than two standard errors over replicates of the paired difference.
    """
    one, fresh = found[name], found[FRESH]
    if one.cost > COST:
        yield f"{study}: {one.cost:g}κ"
    if one.last.mean < fresh.last.mean - 2 * one.last_error:
        yield f"{study}: ACC 3"
    if one.new.mean < KEPT * fresh.new.mean - 2 * one.new_error:
        yield f"{study}: new class"


def read(study: str) -> dict[str, HeldOut]:
    """Every method of a study on its held-out rows."""
    with (RESULTS / study / "heldout.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    last = max(name for name in rows[0] if re.fullmatch(r"ACC \d+", name))
    of: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        of.setdefault(row["method"], []).append(row)

    def each(method: str, column: str) -> list[float]:
        return [float(row[column]) for row in of[method]]

    def values(method: str, column: str) -> Values:
        found = each(method, column)
        return Values(statistics.mean(found), statistics.stdev(found))

    def error(method: str, column: str, share: float = 1.0) -> float:
        pairs = zip(each(method, column), each(FRESH, column), strict=True)
        apart = [own - share * other for own, other in pairs]
        return statistics.stdev(apart) / len(apart) ** 0.5

    return {
        method: HeldOut(
            cost=float(of[method][0]["retrain_cost"]),
            last=values(method, last),
            lost=values(method, "lost"),
            new=values(method, "new class"),
            last_error=error(method, last),
            new_error=error(method, "new class", KEPT),
        )
        for method in of
    }


if __name__ == "__main__":
    main()
