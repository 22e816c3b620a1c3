"""docs/reproduction.md, from the paper's tables and the results beside this file.

python results/make_reproduction.py          # writes the page
python results/make_reproduction.py --check  # says whether it is up to date

A study that is run later is picked up as soon as `results/<study>/table.csv` is there.
"""

# ruff: noqa: E501  the page's own sentences are as long as those of other pages

import argparse
from pathlib import Path

from _reproduction.claims import claims
from _reproduction.figure import figure_2
from _reproduction.studies import STUDIES, ours_of, papers
from _reproduction.tables import balanced, study_part

ROOT = Path(__file__).parents[1]
PAGE = Path("docs/reproduction.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    fresh = page(ROOT / "results")
    if parser.parse_args().check:
        known = (ROOT / PAGE).read_text(encoding="utf-8")
        raise SystemExit(0 if fresh == known else f"{PAGE} is not what the results say.")
    (ROOT / PAGE).write_text(fresh, encoding="utf-8")


def page(results: Path) -> str:
    """The whole page, from a folder of results."""
    paper = papers(results / "paper.csv")
    ours = {study: ours_of(results / study.folder) for study in STUDIES}
    parts = [INTRODUCTION]
    for study, found in ours.items():
        parts += study_part(study, results / study.folder, paper.get(study.paper or ""), found)
    parts += balanced(results)
    parts += figure_2(results)
    parts += claims(ours, results)
    parts.append(REMARKS)
    return "\n".join(parts).rstrip("\n") + "\n"


INTRODUCTION = """\
<!-- Written by results/make_reproduction.py from results/: change that, and run it again. -->

# Reproduction

What the paper reports, and what this package measures with the same protocol. L. Wang et al., "Wisdom of the Ensemble: Improving
Consistency of Deep Learning Models" (NeurIPS 2020). `python results/make_reproduction.py` writes this page from the paper's tables
(`results/paper.csv`) and from results that were really run (`results/<study>/`); no result on it is typed by hand. `dynsnap compare` and
`dynsnap report` work on those folders.

ACC is the mean over three generations; CON (consistency), ACC-CON (correct consistency) and all other metrics of pairs are the mean over
the three pairs; κ is the number of trainings from scratch that one generation takes. MV, WMV: majority and weighted majority vote; AVG,
WAVG: average and weighted average. The new class is the one that the last generation learns for the first time. The paper's SingleBase is
the mean of five runs (standard deviation .2 to .5), its other rows are single runs: expect ± 0.5 (ACC) and ± 1 (CON, ACC-CON) around them.
Its κ for ExtBagging is 20. Seconds are those of the training as it went: on the machine of 20 Newsgroups other work ran at the same time, so
that only κ compares methods there.
"""

REMARKS = """\
## Where the paper disagrees with itself

Found by reading its text, tables and the authors' scripts side by side. The reading in the right column is the one that its numbers need.

| in the paper | followed here |
|---|---|
| the new class of CIFAR-10 is called horse | frog: only that gives the sizes of 24,400, 30,500 and 32,500 |
| shares are of 6,000 images per class | of 5,000, the training images |
| the appendix leaves the new class out of Yahoo! Answers' validation and test sets | all ten classes are in both: only that gives 10,000 and 50,000 |
| Yahoo! Answers grows by .8, 1, 1 | by .8, .9, 1 |
| ExtBagging has 20 members | its files show 5 on CIFAR-10; the study here says how many it has |
| ExtBagging on CIFAR-100 and Yahoo! Answers: Table 2 and Table 5 imply accuracies 1.2 and 1.5 points apart | no target |
| Table 5 pairs some CIFAR-10 rows with the wrong generations | transitions are computed, and not held against it |
| β* divides by max − min | τ is the mean of the round's accuracies, capped at the best |
| the learning rate is printed as a recurrence | absolute multipliers per epoch, as the scripts have it |
| a cyclic snapshot is taken at the end of its cycle | at the best validation epoch of its window, as the scripts have it |
| the index of top-k consistency runs from 0 to k | from 1 to k, so that CCON-1 = CON |
| Pearson and cosine are listed for votes | for the two averages only: of one-hot rows they repeat CON |
| fastText averages padding in, and knows the test set's words | padding is masked, the vocabulary is of training texts |
| an ensemble's consistency is at least the mean of its members' | true of distances between score rows, false of CON and ACC-CON |
| the corollary's probability | not established, and never printed: the gain of a member is measured |
"""


if __name__ == "__main__":
    main()
