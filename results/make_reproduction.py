"""docs/reproduction.md, from the paper's tables and the results beside this file.

python results/make_reproduction.py          # writes the page
python results/make_reproduction.py --check  # fails if it is not up to date

A study that is run later is picked up as soon as `results/<study>/table.csv` is there.
"""

# ruff: noqa: E501  lines of the page are longer than lines of code

import argparse
from pathlib import Path

from _reproduction import claims, tables
from _reproduction.figure import figure_2
from _reproduction.studies import BY_INPUTS, STUDIES, ours_of, papers

ROOT = Path(__file__).parents[1]
PAGE = Path("docs/reproduction.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    fresh = page(ROOT / "results")
    if parser.parse_args().check:
        known = (ROOT / PAGE).read_text(encoding="utf-8")
        raise SystemExit(
            0
            if fresh == known
            else f"{PAGE} is not up to date: run python results/make_reproduction.py."
        )
    (ROOT / PAGE).write_text(fresh, encoding="utf-8")


def page(results: Path) -> str:
    """The whole page, from a folder of results."""
    paper = papers(results / "paper.csv")
    ours = {study: ours_of(results / study.folder) for study in STUDIES}
    tested = claims.tested(ours, results)
    landed = {
        study: tables.landings(study, paper.get(study.paper or ""), found)
        for study, found in ours.items()
    }
    parts = [
        INTRODUCTION,
        *claims.overview(tested),
        DISTANCE,
        *tables.overview(landed),
        READING.format(by_inputs=BY_INPUTS),
    ]
    for study, found in ours.items():
        folder = results / study.folder
        parts += tables.study_part(study, folder, paper.get(study.paper or ""), found)
    parts += tables.balanced(results)
    parts += figure_2(results)
    parts += claims.details(tested)
    parts.append(REMARKS)
    return "\n".join(parts).rstrip("\n") + "\n"


INTRODUCTION = """\
<!-- Written by results/make_reproduction.py from results/: change that, and run it again. -->

# Reproduction

You can check every result of the paper (L. Wang et al., "Wisdom of the Ensemble: Improving Consistency of Deep Learning Models", NeurIPS
2020) against results that were run here, and rerun them:

```console
$ dynsnap report results/cifar10-paper --html page.html
$ dynsnap run cifar10-paper --data cifar-10-batches-py --out runs/cifar10-paper
$ python results/make_reproduction.py
```

The last command writes this page from `results/paper.csv` (the paper's tables) and `results/<study>/`. No result on it is typed by hand.

## Conclusion
"""

DISTANCE = """\
Distance from the paper in points (average), with the limit that was set for this project:
"""

READING = """\
## How to read the tables

* ACC is the mean over three generations. CON (consistency), ACC-CON (correct consistency) and all other metrics of pairs are the mean over the
  three pairs. See the [glossary](glossary.md).
* never-retrain has as many replicates as the study. Where SingleBase has more, it is the first of each run.
* κ is the cost of one generation, in trainings from scratch. The paper's κ for ExtBagging is 20.
* MV, WMV: majority and weighted majority vote. AVG, WAVG: average and weighted average.
* The new class arrives in the last generation.
* The paper's text says "average of 5 replicates per method". It gives a spread for SingleBase only (standard deviation .2 to .5). Ours have one
  replicate where no ± is shown: expect ± 0.5 (ACC) and ± 1 (CON, ACC-CON) around them.
* "{by_inputs}": n = 1, and the interval over inputs leaves out 0. Another seed may undo it, so it counts as no clear difference.
* A study of several replicates stores the mean of its sweeps (20 Newsgroups), so these replicates are not paired. Their intervals are over replicates alone, for these test inputs.
* Pearson and cosine are of the two averages only, as in the paper's appendix. A snapshot is the best of its window by validation, as in its text.
* Our own claims, with paired intervals, are on the page [Evidence](evidence.md).
* Seconds are training time. On the machine of 20 Newsgroups other work ran at the same time, so only κ compares methods there.
"""

REMARKS = """\
## Where the paper disagrees with itself

We read its text, tables and the authors' scripts side by side. The right column is the reading that reproduces its numbers.

| in the paper | followed here |
|---|---|
| the new class of CIFAR-10 is called horse | frog: only that gives the sizes of 24,400, 30,500 and 32,500 |
| shares are of 6,000 images per class | of 5,000, the training images |
| the appendix leaves the new class out of Yahoo! Answers' validation and test sets | all ten classes are in both: only that gives 10,000 and 50,000 |
| Yahoo! Answers grows by .8, 1, 1 | by .8, .9, 1 |
| ExtBagging has 20 members | its files show 5 on CIFAR-10; the sections above state the number here |
| ExtBagging on CIFAR-100 and Yahoo! Answers: Table 2 and Table 5 imply accuracies 1.2 and 1.5 points apart | no target |
| Table 5 pairs some CIFAR-10 rows with the wrong generations | transitions are computed and not compared with it |
| β* divides by max − min | τ is the mean of the round's accuracies, capped at the best |
| the learning rate is printed as a recurrence | absolute multipliers per epoch, as in the scripts |
| the index of top-k consistency runs from 0 to k | from 1 to k, so that CCON-1 = CON |
| fastText averages padding in, and knows the test set's words | padding is masked, the vocabulary is of training texts |
| an ensemble's consistency is at least the mean of its members' | true of distances between score rows, false of CON and ACC-CON |
| the corollary's probability | not established and never printed; the gain of a member is measured |
"""


if __name__ == "__main__":
    main()
