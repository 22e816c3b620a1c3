"""A document with every kind of node, every kind of column, and every kind of plot."""

from typing import get_args

import numpy as np

from dynsnap.comparison import Estimate
from dynsnap.report.document import (
    Banner,
    Bullet,
    Bullets,
    Cell,
    Check,
    Column,
    Details,
    Document,
    Fold,
    Kind,
    Marks,
    Node,
    Part,
    Prose,
    Section,
    Side,
    Stack,
    Strip,
    Table,
    Tile,
    Tiles,
)
from dynsnap.report.figures import Figure, Point, Series, chart, grid

ESTIMATE = Estimate(0.8125, 0.75, 0.875)


def table(text, **more):
    """A table with a column of each kind."""
    columns = [Column(f"{text} {kind}", kind, text) for kind in get_args(Kind)]
    row = [
        Cell(text, hint=text),
        Cell("2024-05-06"),
        Cell("0.1357", 0.1357, "best"),
        Cell("[0.1211, 0.1413]"),
        Cell(text, tone="bad"),
        Cell(text),
        Cell(plot=Strip(estimate=ESTIMATE, threshold=0.5)),
        Cell(text, image=np.zeros((2, 2, 1), np.uint8)),
    ]
    marks = [*row[:6], Cell(plot=Marks(3, 2, 3)), Cell(text)]
    return Table(
        **{"name": "every", "title": text, "footer": text, **more},
        columns=tuple(columns),
        rows=(tuple(row), tuple(marks)),
    )


def curve(letters, text):
    points = tuple(Point(x=float(x), y=y) for x, y in ((1, 0.2468), (2, 0.3579)))
    return chart(
        name=f"chart-{letters}",
        title=text,
        description=text,
        series=[Series(name=text, points=points, tone="one")],
        across=text,
        up=text,
        letters=letters,
    )


def matrix(text):
    return grid(
        name="grid",
        title=text,
        description=text,
        rows=[text],
        columns=[text],
        values=[[0.4321]],
        said="{:.4f}".format,
        tone="one",
        letters="table",
    )


def nodes(text="words"):
    """One of each kind of node, by kind."""
    tile = Tile(
        name=text, estimate=ESTIMATE, symbol=text, meaning=text, note=text, reference=0.8013
    )
    parts = (Part(text, 7, "kept"), Part(text, 2, "lost"))
    made = [
        table(text),
        Prose(text),
        Bullets(title=text, items=(Bullet(text), Bullet(text, "whole"))),
        Tiles(tiles=(tile,), title=text, reference=text, footer=text),
        Stack(parts),
        Side((Prose(text), Prose(text, "quiet"))),
        Fold(text, (Prose(text), Prose(text, "quiet"))),
        Details(text, text, "all"),
        Section(name="inner", title=text, lead=text, lead_detail="all", body=(Prose(text),)),
        curve("lines", text),
    ]
    assert {type(node) for node in made} == set(get_args(Node))
    return made


def whole(text="words"):
    """All of them in one document, with all else that a document can have."""
    more = [curve("none", text), curve("plane", text), matrix(text)]
    body = (*nodes(text), *more)
    section = Section(name="whole", title=text, short=text, lead=text, body=body)
    return Document(
        title=text,
        about=text,
        banner=Banner(text, text, good=False, reasons=(Bullet(text, "whole"), Bullet(text))),
        warnings=(text,),
        sections=(section,),
        made_from=text,
        suite="kit",
        checks=tuple(Check(text, status, text) for status in ("passed", "failed", "skipped")),
        properties=((text, text),),
    )


def figures(text="words"):
    return [node for node in nodes(text) if isinstance(node, Figure)] + [matrix(text)]
