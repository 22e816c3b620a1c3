"""The inputs themselves: those that were lost, and those that change again and again."""

from collections.abc import Sequence

from dynsnap.comparison import Comparison, PairResult, UnstableInput
from dynsnap.report._blocks import count
from dynsnap.report._element import Markup
from dynsnap.report.html._looks import Looks, look, looks_head, most_rows
from dynsnap.report.html._parts import Entry, Head, Listing, Section, listing


def flipped(comparison: Comparison, pair: PairResult, rows: int, looks: Looks) -> Section:
    """The inputs lost, or without truth those whose label changed."""
    known = comparison.has_truth
    what = "lost" if known else "changed"
    whole = how_many(comparison, pair)
    if not pair.flipped:
        none = "No input was lost." if known else "No label changed."
        return Section(name="inputs", title=f"Inputs {what}", lead=none)
    shown = pair.flipped[: most_rows(looks, rows)]
    seen = any(one.id in looks for one in shown)
    scored = any(one.new_confidence is not None for one in shown)
    heads = [Head("id"), *([looks_head()] if seen else [])]
    # What was lost was right before: the old label is the truth.
    heads += [Head("was, rightly" if known else "was"), Head("is now")]
    if scored:
        heads += [
            Head("confidence then", True, "The old score of the old label."),
            Head("confidence now", True, "The new score of the new label."),
        ]
    heads += [Head(column) for column in comparison.slices]
    lines = []
    for one in shown:
        line = [Entry(one.id), *([look(looks, one.id)] if seen else [])]
        line += [Entry(one.old_label, tone="text"), Entry(one.new_label, tone="text")]
        if scored:
            line += [_sure(one.old_confidence), _sure(one.new_confidence)]
        lines.append([*line, *(Entry(value, tone="text") for value in one.slices)])
    order = "those that the new generation is surest of first" if scored else "in file order"
    return Section(
        name="inputs",
        title=f"Inputs {what}",
        lead=f"{count(whole)} inputs, {order}." if whole else "",
        body=[
            listing(
                Listing(
                    name="flipped-table",
                    caption=f"Inputs {what}",
                    heads=tuple(heads),
                    rows=lines,
                    search=True,
                    sorted_by=(4 + seen, "descending") if scored else None,
                    whole=whole,
                    note="All of them: dynsnap compare --flips flips.parquet."
                    if whole > len(lines)
                    else "",
                )
            )
        ],
    )


def restless(
    found: Sequence[UnstableInput], names: Sequence[str], rows: int, looks: Looks
) -> Markup:
    """The inputs whose label changes again and again."""
    shown = found[: most_rows(looks, rows)]
    seen = any(one.id in looks for one in shown)
    known = any(one.truth is not None for one in shown)
    heads = [Head("id"), *([looks_head()] if seen else []), Head("changes", True)]
    if known:
        heads.append(Head("truth"))
    heads += [Head(name) for name in names[-_GENERATIONS:]]
    lines = []
    for one in shown:
        line = [Entry(one.id), *([look(looks, one.id)] if seen else [])]
        line.append(Entry(str(one.changes), key=one.changes))
        if known:
            line.append(Entry(one.truth or ""))
        line += [
            Entry(label, tone="" if one.truth in (None, label) else "bad")
            for label in one.labels[-_GENERATIONS:]
        ]
        lines.append(line)
    return listing(
        Listing(
            name="restless-table",
            caption="Inputs that change again and again, with their label in every generation",
            heads=tuple(heads),
            rows=lines,
            search=True,
            sorted_by=(1 + seen, "descending"),
            # Not "the" inputs: others may have changed as often as the last.
            note=f"{len(lines)} inputs, most changes first"
            + ("; coloured where the label is wrong." if known else "."),
        )
    )


_GENERATIONS = 12  # columns of labels


def _sure(value: float | None) -> Entry:
    return Entry("–") if value is None else Entry(f"{value:.3f}", key=value)


def how_many(comparison: Comparison, pair: PairResult) -> int:
    """How many inputs were lost; without truth, how many labels changed."""
    if pair.transitions is not None:
        return pair.transitions.lost
    if comparison.weighted:  # shares go by weight; what is named is what is known
        return len(pair.flipped)
    return round(pair.metrics["churn"].value * comparison.inputs)
