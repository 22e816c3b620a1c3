"""An audit of the theorems as a section of a page."""

from collections.abc import Mapping

from dynsnap.metrics import metric
from dynsnap.report._blocks import count, number
from dynsnap.report._element import Markup, element
from dynsnap.report.html._parts import Entry, Head, Listing, Section, listing
from dynsnap.theory import Audit


def audited(audits: Mapping[str, Audit]) -> Section:
    """Both sides of every theorem, for each pair of ensembles that was looked at."""
    holds = all(audit.holds for audit in audits.values())
    body: list[Markup] = []
    for place, (name, audit) in enumerate(audits.items()):
        body += [_bounds(f"bounds-{place}", name, audit), _standings(f"standings-{place}", audit)]
    body.append(element("p", next(iter(audits.values())).honest, class_="note"))
    said = "Every theorem holds on" if holds else "A theorem does not hold on"
    return Section(
        name="audit",
        title="Theorem audit",
        short="Theorems",
        lead=f"Both sides of the paper's theorems, computed on stored members. {said} these.",
        body=body,
    )


def _bounds(name: str, title: str, audit: Audit) -> Markup:
    rows = [
        _line(each.name, each.left, each.right, each.holds, each.claim) for each in audit.bounds
    ]
    within = audit.accuracy_bounds
    if within is not None:
        for name_of, left, right in (
            (f"{within.name}, from below", within.low, within.value),
            (f"{within.name}, from above", within.value, within.high),
        ):
            rows.append(_line(name_of, left, right, within.holds, within.claim))
    return listing(
        Listing(
            name=name,
            caption=f"{title}: {count(audit.members)} members, {count(audit.inputs)} inputs",
            heads=(
                Head("theorem"),
                Head("left", True, "The side that must not be larger, as a mean over the inputs."),
                Head("right", True),
                Head("slack", True),
                Head("holds"),
                Head("claim"),
            ),
            rows=rows,
            note=" ".join(audit.notes),
        )
    )


def _line(name: str, left: float, right: float, holds: bool, claim: str) -> list[Entry]:
    return [
        Entry(name),
        Entry(number(left), key=left),
        Entry(number(right), key=right),
        Entry(number(right - left), key=right - left),
        Entry("yes" if holds else "NO", tone="good" if holds else "bad"),
        Entry(element("span", claim), tone="claim"),  # dynsnap's own words are never cut short
    ]


def _standings(name: str, audit: Audit) -> Markup:
    return listing(
        Listing(
            name=name,
            caption="The ensemble beside its members",
            heads=(
                Head("metric"),
                Head("ensemble", True),
                Head("mean member", True),
                Head("best member", True),
            ),
            rows=[
                [
                    Entry(metric(one.metric).symbol),
                    Entry(number(one.ensemble), key=one.ensemble),
                    Entry(number(one.mean_member), key=one.mean_member),
                    Entry(number(one.best_member), key=one.best_member),
                ]
                for one in audit.standings
            ],
        )
    )
