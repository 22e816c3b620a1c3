"""docs/evidence.md: every claim in one line, from the results beside this file.

python results/evidence.py          # writes the page
python results/evidence.py --check  # fails if it is not up to date

A study that is run later is picked up as soon as `results/<study>/` is there.
"""

# ruff: noqa: E501  lines of the page are longer than lines of code

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent
sys.path.insert(0, str(RESULTS))

from _claims import (  # noqa: E402  it lies beside this file
    BY_DESIGN,
    CHOICES,
    CLAIMS,
    ELSEWHERE,
    EQUAL_COST,
    NAMES,
    SECTIONS,
    WEEKLY,
    WEEKLY_CLAIMS,
    Claim,
)
from _measured import BELOW, OPEN, Measured, has_labels, line, points  # noqa: E402
from _seeds import folders  # noqa: E402
from _verdicts import (  # noqa: E402
    DESIGNED,
    NO_CLAIM,
    ClaimRow,
    Ends,
    Shown,
    Verdict,
    discoveries,
    is_shown,
    shown_of,
    verdict,
)
from _weeks import FRESH, weekly_study  # noqa: E402
from dynsnap.comparison import PairedDifference  # noqa: E402
from dynsnap.report import kappa  # noqa: E402
from dynsnap.study import MethodLabels  # noqa: E402
from dynsnap.study.distilling import UNTAUGHT, control_of  # noqa: E402

PAGE = RESULTS.parent / "docs" / "evidence.md"
COVERAGE = RESULTS / "paired_coverage.json"
FALSE_DISCOVERIES = 0.05


class Reference(NamedTuple):
    """What a method is held against: its labels, its name there, and what it costs.

    Attributes:
        labels: The labels of the study that it was measured in.
        name: The method.
        minus: The method as the page names it, with the study if it is another.
        cost: Trainings from scratch (κ) of all generations that are paid for.
        networks: How many networks one prediction takes.
    """

    labels: MethodLabels
    name: str
    minus: str
    cost: float
    networks: str


class Evidence:
    """All rows of the page, from a folder of results.

    Args:
        results: The folder.
    """

    def __init__(self, results: Path) -> None:
        self._results = results
        self._known: dict[str, Measured] = {}
        self._rows_of: dict[tuple[Claim, str], list[ClaimRow]] = {}
        self._claimed: dict[str, Shown] = {}
        self._alone: set[str] = set()  # of the claimed, those that one replicate speaks against
        self._compared: set[str] = set()

    def study(self, name: str) -> Measured | None:
        """A study with its labels; further seeds of it are further replicates."""
        if name not in self._known:
            if not has_labels(name, self._results):
                return None
            self._known[name] = Measured(self._results / name)
        return self._known[name]

    def _rounds(self, name: str) -> int:
        """Rounds that a study took, with all of its seeds."""
        return sum(
            json.loads((one / "about.json").read_bytes())["rounds"]
            for one in folders(self._results / name)
        )

    def rows(self, claims: Sequence[Claim]) -> Iterator[ClaimRow]:
        """The rows of a section; a study that was not run has none."""
        return (row for claim in claims for name in claim.studies for row in self._of(claim, name))

    def _of(self, claim: Claim, name: str) -> list[ClaimRow]:
        """The row of a claim about one study, if there is one: computed once, shown in places."""
        if (claim, name) not in self._rows_of:
            of = self.study(name)
            known = of is not None and claim.method in (*of.methods, *of.students)
            self._rows_of[claim, name] = list(self._row(claim, of)) if known else []
        return self._rows_of[claim, name]

    def glance(self) -> Iterator[str]:
        """Every claim with the studies that speak for it and against it."""
        for claim in CLAIMS:
            sides: dict[str, list[str]] = {"for": [], "against": [], OPEN: [], NO_CLAIM: []}
            for name in claim.studies:
                for row in self._of(claim, name):
                    (found,) = row.verdicts
                    side = found.said if found.said in (OPEN, NO_CLAIM) else "for"
                    side = "against" if found.against else side
                    about = f"{row.replicates}"
                    if claim.wanted == "no harm" and not found.against:
                        about += f"; {row.detectable}"
                    sides[side].append(f"{name} ({about})")
            if any(sides.values()):
                yield line([claim.says, *map("; ".join, sides.values())])

    def short(self, weekly: Sequence[ClaimRow]) -> Iterator[str]:
        """How the claims of each section end."""
        for title, claims in SECTIONS.items():
            if next(self.rows(claims), None):
                about = title.partition(":")[0].partition(" (")[0]
                yield line([about, *self._ends(claims).cells()])
        if weekly:
            yield line(["Real weeks", *Ends.of_weeks(weekly).cells()])

    def in_short(self, weekly: Sequence[ClaimRow]) -> str:
        """How the claims of all sections end."""
        ends = self._ends(CLAIMS)
        weeks = Ends.of_weeks(weekly)
        harmed = ends.harmed + weeks.harmed
        return SHORT.format(
            better=shown_of(ends.better + weeks.better),
            learnt=shown_of(ends.learnt),
            harmed=f"{harmed.count(BELOW) + harmed.count(OPEN)} of {len(harmed)}",
        )

    def _ends(self, claims: Sequence[Claim]) -> Ends:
        return Ends.of((claim, self.rows([claim])) for claim in claims)

    def alone(self) -> str:
        """The studies that have rows of one replicate."""
        names = dict.fromkeys(row.study for row in self.rows(CLAIMS) if row.replicates == 1)
        return ", ".join(f"`{one}`" for one in names) or "No studies"

    def _row(self, claim: Claim, of: Measured) -> Iterator[ClaimRow]:
        reference = self._reference(claim, of)
        at = partial(differences, of, claim, reference)
        found = list(at()) if reference.labels.replicates(reference.name) else []
        if not found:
            return
        gaps = [one for _, one in found]
        same = compared(of, claim, reference)
        said = verdict(gaps, claim.wanted, again=same in self._compared)
        if said.said != NO_CLAIM:
            self._compared.add(same)
            if claim.wanted != "no harm" and not said.again:
                self._claim(
                    f"{claim.says}: {claim.method} ({of.name})",
                    lambda confidence: is_shown([one for _, one in at(confidence)], claim.wanted),
                    gaps[0].replicates,
                )
        yield ClaimRow(
            study=of.name,
            says=f"{claim.says}: {NAMES[claim.metric]}, `{claim.method}` minus {reference.minus}",
            command=_command(of.name, claim.method),
            replicates=gaps[0].replicates,
            gaps=("; ".join(f"{about}{points(one)}" for about, one in found),),
            detectable=f"{100 * max(one.detectable for one in gaps):.1f}",
            costs=(
                f"{kappa(of.costs(claim.method)[2])} / {kappa(reference.cost)}",
                f"{of.networks(claim.method)} / {reference.networks}",
            ),
            verdicts=(said,),
        )

    def _claim(self, says: str, shown: Shown, replicates: int) -> None:
        """Count a claim of a difference."""
        self._claimed[says] = shown
        if replicates == 1:
            self._alone.add(says)

    def _reference(self, claim: Claim, of: Measured) -> "Reference":
        """What a claim about a study is held against."""
        other, name = of, claim.reference
        if name == "equal cost":
            held = self.study(EQUAL_COST[of.name])
            other, name = (of, "") if held is None else (held, "extbagging")
        elif name == "extbagging" and name not in of.methods and of.name in ELSEWHERE:
            other = self.study(ELSEWHERE[of.name]) or of
        elif name == "strongest":
            strongest = of.against(claim.method, "strongest")
            name = "" if strongest is None else strongest.reference
        elif name == "first":
            kept = f"never-retrain-{claim.method}"
            cost, networks = of.costs(claim.method)[0], of.networks(kept)
            return Reference(of.labels, kept, "its own first generation", cost, networks)
        elif name == "control":
            twin = control_of(claim.method)
            cost = of.costs(UNTAUGHT)[2] if UNTAUGHT in of.students else 0.0
            return Reference(of.labels, twin, f"`{twin}`", cost, of.networks(UNTAUGHT))
        known = name in other.methods
        cost, networks = (other.costs(name)[2], other.networks(name)) if known else (0.0, "")
        minus = f"`{name}`" if other is of else f"`{other.name}::{name}`"
        return Reference(other.labels, name, minus, cost, networks)

    def weekly(self) -> Iterator[ClaimRow]:
        """Streams by time: every method minus a fresh model each week, on the weeks that follow."""
        for name in WEEKLY:
            if not has_labels(name, self._results):
                continue
            of = weekly_study(self._results / name)
            for method, says in WEEKLY_CLAIMS.items():
                if method not in of.methods:
                    continue
                lost, accuracy = (of.minus(method, FRESH, metric) for metric in ("lost", "new"))
                fewer = Verdict(DESIGNED)
                if method not in BY_DESIGN:
                    fewer = verdict([lost], "lower")
                    again = partial(of.minus, method, FRESH, "lost")
                    if fewer.said != NO_CLAIM:
                        self._claim(f"{says} ({name})", partial(_fewer, again), lost.replicates)
                yield ClaimRow(
                    study=name,
                    says=f"{says}: `{method}`",
                    command=f"`dynsnap run {name}`",
                    replicates=lost.replicates,
                    gaps=(points(lost, 2), points(accuracy, 2)),
                    detectable=f"{100 * accuracy.detectable:.1f}",
                    costs=(f"{kappa(of.cost(method))} / {kappa(of.cost(FRESH))}",),
                    verdicts=(fewer, verdict([accuracy], "no harm")),
                )

    def multiplicity(self) -> str:
        """How many claims of a difference chance alone would show, and which a correction drops."""
        claimed = dict(self._claimed)
        shown = {says for says, one in claimed.items() if one(1 - FALSE_DISCOVERIES)}
        kept = discoveries(claimed, FALSE_DISCOVERIES)
        dropped = ", ".join(sorted(shown - kept)) or "none"
        return MANY.format(
            claims=len(claimed),
            shown=len(shown),
            chance=f"{FALSE_DISCOVERIES / 2 * len(claimed):.0f}",
            rate=f"{100 * FALSE_DISCOVERIES:.0f}",
            kept=len(kept),
            dropped=dropped,
            alone=f"{len(self._alone) or 'none'} of these claims rest{'s' * (len(self._alone) < 2)}",
        )

    def studies(self) -> Iterator[str]:
        """What every study was run with."""
        names = dict.fromkeys(name for claim in CLAIMS for name in claim.studies)
        names |= dict.fromkeys(EQUAL_COST.values())
        for name in names:
            of = self.study(name)
            if of is None:
                yield line([f"`{name}`", "not stored yet", "", "", "", ""])
                continue
            about = json.loads((self._results / name / "about.json").read_text(encoding="utf-8"))
            many = {len(of.labels.replicates(method)) for method in of.labels.methods}
            n = f"{min(many)}" if len(many) == 1 else f"{min(many)} to {max(many)}"
            late = "" if of.labels.late is None else f"{len(of.labels.late.ids):,}"
            device = about["environment"].get("device", "")
            yield line(
                [
                    f"`{name}`",
                    n,
                    f"{about['test_inputs']:,}",
                    late,
                    f"{self._rounds(name):,}",
                    device,
                ]
            )


def _command(study: str, method: str) -> str:
    if not method.startswith("distilled"):
        return f"`dynsnap run {study}`"
    name = f"examples/{study}.toml" if study.startswith("distill-") else study
    return f"`dynsnap distill {name}`"


def differences(
    of: Measured, claim: Claim, reference: Reference, confidence: float = 0.95
) -> Iterator[tuple[str, PairedDifference]]:
    """The difference of the claim's metric; of every later generation, where it is about those."""
    for metric, about in metrics_of(of, claim).items():
        found = of.labels.difference(
            claim.method,
            reference.name,
            metric,
            elsewhere=reference.labels,
            confidence=confidence,
        )
        if found is not None:
            yield about, found


def compared(of: Measured, claim: Claim, reference: Reference) -> str:
    """A digest of what a row compares: two rows of a study with the same one are one difference."""
    found = hashlib.sha256(of.name.encode())
    for metric in metrics_of(of, claim):
        mine = of.labels.values(claim.method, metric)
        other = reference.labels.values(reference.name, metric)
        for replicate in (one for one in mine if one in other):
            for values in (mine[replicate], other[replicate]):
                found.update(f"{metric} {replicate}".encode() + values.tobytes())
    return found.hexdigest()


def metrics_of(of: Measured, claim: Claim) -> dict[str, str]:
    """The metrics that a claim is about, and what is written before the difference of each."""
    if claim.metric == "later":
        return {f"accuracy_{n}": f"g{n} " for n in range(2, of.labels.generations + 1)}
    return {claim.metric: ""}


def _fewer(difference: Callable[..., PairedDifference], confidence: float) -> bool:
    return is_shown([difference(confidence=confidence)], "lower")


def coverage(path: Path) -> Iterator[str]:
    """How often intervals hold the truth in simulated studies, by the number of replicates."""
    by: dict[int, list[dict[str, Any]]] = {}
    for one in json.loads(path.read_text(encoding="utf-8")):
        by.setdefault(one["replicates"], []).append(one)
    yield HOLD
    for replicates, worlds in by.items():
        seen = [list(one["worse"].values())[-1].get(BELOW, 0.0) for one in worlds]
        worse = [1 - one["worse"]["0.01"].get(BELOW, 0.0) for one in worlds]
        yield line(
            [
                str(replicates),
                _range([share for one in worlds for share in one["held"].values()]),
                _range([one["equal"].get("shown", 0.0) for one in worlds]),
                _range([one["equal"].get(BELOW, 0.0) for one in worlds]),
                _range(worse),
                _range([one["equal"]["detectable"] for one in worlds], 1),
                _range(seen),
            ]
        )
    held = {n: min(min(one["held"].values()) for one in worlds) for n, worlds in by.items()}
    yield ""
    yield HELD.format(
        alone=f"{100 * held[1]:.0f}",
        below=f"{100 * max(one['equal'].get(BELOW, 0.0) for one in by[1]):.0f}",
        least=f"{100 * min(share for n, share in held.items() if n > 1):.0f}",
    )


def _folded(head: str, rows: Sequence[ClaimRow]) -> list[str]:
    """A table that no reader scans whole."""
    about = f"All {len(rows)} rows: difference, interval, cost, verdict"
    start = f'<details markdown="1"><summary>{about}</summary>\n'
    return [start, head, *map(str, rows), "", "</details>\n"]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _range(shares: Sequence[float], places: int = 0) -> str:
    low, high = (f"{100 * one:.{places}f}" for one in (min(shares), max(shares)))
    return low if low == high else f"{low} to {high}"


def page(results: Path) -> str:
    """The whole page, from a folder of results."""
    evidence = Evidence(results)
    parts = [GLANCE, *evidence.glance(), ""]
    for title, claims in SECTIONS.items():
        parts += [f"## {title}\n", CHOICES[title], *_folded(HEAD, list(evidence.rows(claims)))]
    weekly = list(evidence.weekly())
    if weekly:
        parts += [WEEKS, *_folded(WEEKS_HEAD, weekly)]
    parts += [STUDIES, *evidence.studies(), ""]
    parts += [*coverage(COVERAGE), LIMITS.format(alone=evidence.alone())]
    verdicts = [one for row in evidence.rows(CLAIMS) for one in row.verdicts]
    introduction = INTRODUCTION.format(
        multiplicity=evidence.multiplicity(),
        in_short=evidence.in_short(weekly),
        short="\n".join(evidence.short(weekly)),
        again=_rows(sum(one.again for one in verdicts)),
        once=_rows(sum(one.said == NO_CLAIM for one in verdicts)),
    )
    return "\n".join([introduction, *parts]).rstrip("\n") + "\n"


HEAD = """\
| claim | command | n | difference in points (95 % interval) | detectable | κ of all generations | networks | verdict |
|---|---|---|---|---|---|---|---|"""

INTRODUCTION = """\
<!-- Written by results/evidence.py from results/: change that, and run it again. -->

# Evidence

Check each of our claims in five minutes, and recompute any of them from the published labels:

```console
$ dynsnap report results/digits-rolling --html page.html
$ python results/evidence.py --check
```

{in_short}

| section | loses fewer, is more consistent, or more often right twice: shown | learns: shown | accuracy, new class: not clearly below | clearly below | open |
|---|---|---|---|---|---|
{short}

* **What is counted.** Each distinct difference once: where rows of a study compare the same answers, input by input, the first counts and the others say "counted above" ({again}). What one replicate
  alone speaks for is "no claim" ({once}) and is not counted; what it speaks against is. That models which are retrained in few weeks lose fewer answers is "by design" and not counted; what it costs
  in accuracy is. Comparisons are not independent: studies of one data set share test inputs, and methods of one study share rounds.
* **Difference**: the method minus the reference on the same inputs, replicate by replicate. The 95 % interval is over inputs and replicates
  (seeds), for these training data; [how often it holds the truth](#do-the-intervals-hold) was simulated. With n = 1 it covers inputs alone, as its row says: another
  seed may change what it shows.
* **Detectable**: the smallest difference that these data would have shown four times out of five. "Not clearly below" is no proof that a method does no harm: a loss smaller than this
  may have gone unseen. Where the interval includes a loss of more than five points, the verdict is "open". That limit is wide,
  since more than nine of ten differences in accuracy between methods are below three points: read what was detectable, not the verdict alone.
* **κ of all generations**: trainings from scratch, the first generation included, of method / reference, each the mean over all its replicates. **Networks**: what one prediction costs.
* **Command**: it trains the first seed. Where there is a folder `results/NAME-2021` or `-2022`, its `study.toml` is a further one: `dynsnap run results/cifar100-rolling-2022/study.toml`.
* ACC is of every later generation (g2, g3), on classes that all generations know. The new class has its own lines.
* Lost is the mean over consecutive retrains. CON and ACC-CON are means over all pairs of generations.
{multiplicity}
The paper's tables, number by number, are on the page [Reproduction](reproduction.md); the full tables are on [Rolling ensembles](beyond.md) and [One
network](one-network.md).
"""

SHORT = """\
In short: in {better} comparisons a method loses clearly fewer right answers than its reference, is clearly more consistent, or more often right twice. In {learnt} comparisons with its own first generation, never
retrained, it learns: each later generation is clearly more accurate. The price is accuracy, or the new class: {harmed} comparisons there are clearly below or open."""

GLANCE = """\
## At a glance

"For" is shown, or no clear harm; "against" is not shown, contradicted, or clearly below; "open" is no clear harm where the interval includes a loss of more than five points; "no claim" is what
one replicate alone speaks for. In brackets: n, then the smallest harm, in points, that these data would have shown four times out of five, since no clear harm is no proof. What is "counted above"
stands here again. A row that begins with … is about the method of the row above. The sections below have every difference, that on real weeks a table of its own:

| claim | for | against | open | no claim |
|---|---|---|---|---|"""

WEEKS = """\
## Real weeks

A method minus a fresh model every week, on the week after each of 46 retrains. The interval is over weeks and replicates: flights of one week share
their weather, and weeks that follow count as alike (Newey and West). The margin of 0.2 is the default and was not chosen here; nothing else was chosen on the reported weeks. The outcome has two parts: whether it loses
clearly fewer right answers, and whether it is clearly less accurate. A model that is retrained in few weeks, or never, loses fewer "by design": without a retrain no answer changes. See [real weeks](flights.md).
"""
WEEKS_HEAD = """\
| claim | command | n | lost per retrain | ACC | detectable: ACC | κ of all generations | outcome |
|---|---|---|---|---|---|---|---|"""

STUDIES = """\
## What was run

`cifar100-paper` and `cifar100-rolling` are of the same rounds, which both rows count. The rounds of `20news-bagging-3` and `digits-bagging-3` are rounds of `20news` and `digits`, trained
again:

| study | n | test inputs | inputs of the new class | rounds | on |
|---|---|---|---|---|---|"""

MANY = """\
* **Many claims.** Of {claims} claims of a difference, {shown} are shown; chance alone would show {chance} if none were true. At a false discovery rate of {rate} %
  (Benjamini and Hochberg) {kept} stay shown. Dropped: {dropped}. This assumes that intervals cover 95 %;
  {alone} on one replicate. So many are shown that this correction is hardly stricter than none. What is true by design is no claim here. "Clearly below" is not corrected, so that no harm is overlooked.
"""

HOLD = """\
## Do the intervals hold?

Studies were simulated in five worlds like ours (`python results/paired_coverage.py`): accuracy, agreement between runs and generations, and the luck of seeds are those of
20 Newsgroups (twice), CIFAR-10 and digits (twice), from seeds that hardly matter to seeds that matter most. There the true difference over new inputs and new seeds
is known. 1,000 studies of each kind are judged by the code of this page, verdicts on 500. In percent, from the lowest world to the highest; the interval column is over CON, lost and ACC:

| n | intervals that hold the truth (95) | equal methods: "shown" (2.5) | equal methods: "clearly below" in g2 or g3 (5) | one point worse: not "clearly below" | detectable (median, points) | worse by that: "clearly below" (80) |
|---|---|---|---|---|---|---|"""

HELD = """\
With n = 1 only {alone} % of the intervals hold the truth where seeds matter most, and {below} % of equal methods look clearly below: what such rows speak for is no claim. From n = 2 on at least {least} % hold it. With n = 2 little can be shown, and little be
blamed: what two runs show alone they may leave open together. Why so: [decision 18](decisions/0018-two-sources-of-doubt.md).
"""

LIMITS = """\
## What this does not show

* **Choices on test rows.** Each section begins with them. The strongest fresh method is chosen on the reported inputs, which favours the reference.
* **Strongest** is meant of the methods of a study. Bagging at the cost of DynSnap-cyc, three networks that average, was measured on CIFAR-100 (n = 2), 20 Newsgroups and
  digits, and not on CIFAR-10.
* **Replicates one after another.** The seeds of the CIFAR sets were run one after another, and read in between. That there would be three, and two of bagging, MCDropout and
  DynSnap-step on CIFAR-100, was set before the second, and no run that ended was left out. The first single network of CIFAR-100's second seed stands in `cifar100-rolling` alone: `cifar100-paper` has three later ones. Those of `cifar10-distill` ran beside each other, after the first was published.
* **One replicate.** {alone} have rows with n = 1: differences between these networks. What a replicate takes on a GPU like ours:
  `dynsnap run cifar100-paper --data cifar-100-python --plan --inputs-per-second 93000`.
* **Shared rounds.** With `prefixes` DynSnap-cyc's first round is the beginning of Snapshot's training, on CIFAR-10 and in the first run on CIFAR-100. This correlates
  the two; their difference is smaller than between separate runs.
* **Validation.** Warm-started and fine-tuned rounds validate on rows that their parent may have trained on. Single networks keep their last epoch instead.
* **Weeks.** Weeks that follow are alike, with a correlation of up to 0.46. Intervals over 46 weeks and three replicates allow for it in part: in simulations 95 % hold the truth
  at a correlation of 0.2, which is usual here, and 90 % at 0.45.
* **Three generations, one new class.** Digits and 20 Newsgroups are not trained to convergence, so methods that train longer gain by that too.
* **Stabilized** answers need stored answers for the same inputs. An input that was never scored gets the plain label.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    fresh = page(RESULTS)
    if parser.parse_args().check:
        known = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        if fresh != known:
            raise SystemExit(f"{PAGE.name} is not up to date: run python results/evidence.py.")
        rows = sum(one.startswith("| ") and "`dynsnap " in one for one in fresh.splitlines())
        print(f"{PAGE.name} says what the results do: {rows} rows of claims recomputed.")
        return
    PAGE.write_text(fresh, encoding="utf-8")


if __name__ == "__main__":
    main()
