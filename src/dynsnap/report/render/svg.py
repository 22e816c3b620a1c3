"""A figure as SVG: within a page, in the page's colours, or as a file of its own."""

from dynsnap.report.figures._drawing import Box, Dot, Figure, Shape, Stroke, Text
from dynsnap.report.render.markup import Markup, element
from dynsnap.report.words import clipped

# The one palette: Okabe and Ito's colours, which colour-blind people can tell apart. Dark ones are
# lighter versions of the same hues, for the same contrast on a dark ground.
LIGHT = {
    "ground": "#ffffff",
    "panel": "#f4f5f7",
    "ink": "#1b1f24",
    "muted": "#57606a",
    "line": "#d5d9de",
    "accent": "#0059a3",
    "kept": "#8c9bab",
    "gained": "#0072b2",
    "lost": "#c14b00",
    "never": "#b9bfc7",
    "good": "#00694d",
    "bad": "#b03a00",
    "one": "#0072b2",
    "two": "#d55e00",
    "three": "#009e73",
    "four": "#b3589a",
    "five": "#a67c00",
    "six": "#57606a",
}

DARK = {
    "ground": "#14171b",
    "panel": "#1e2228",
    "ink": "#e8eaed",
    "muted": "#a3abb5",
    "line": "#3a414a",
    "accent": "#7cc0f5",
    "kept": "#7d8b9a",
    "gained": "#5ab4ec",
    "lost": "#ff8f4d",
    "never": "#565e68",
    "good": "#4fd1a5",
    "bad": "#ff9a62",
    "one": "#5ab4ec",
    "two": "#ff8f4d",
    "three": "#3ecf9f",
    "four": "#dd93c8",
    "five": "#e0b84a",
    "six": "#a3abb5",
}

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"


def inline(figure: Figure) -> Markup:
    """A figure as an SVG element of a page."""
    return _svg(figure, title=f"{figure.name}-title", description=f"{figure.name}-desc")


def to_svg(figure: Figure) -> str:
    """A figure as an SVG file that needs nothing else."""
    style = element(
        "style",
        Markup(f":root{{{properties(LIGHT)}}}{classes()}text{{font-family:{FONT}}}"),
    )
    ground = Markup(f'<rect width="100%" height="100%" fill="{LIGHT["ground"]}"/>')
    drawn = _svg(
        figure,
        style,
        ground,
        title="title",
        description="desc",
        xmlns="http://www.w3.org/2000/svg",
        width=_short(figure.width),
        height=_short(figure.height),
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'


def ornament(figure: Figure, *, class_: str) -> Markup:
    """A small picture beside a number that states the same, so nothing for a screen reader."""
    return element(
        "svg",
        [_shape(shape) for shape in figure.shapes],
        viewBox=f"0 0 {_short(figure.width)} {_short(figure.height)}",
        class_=class_,
        aria_hidden="true",
    )


def _svg(figure: Figure, *first: Markup, title: str, description: str, **attributes: str) -> Markup:
    return element(
        "svg",
        element("title", clipped(figure.title, 200), id=title),
        element("desc", clipped(figure.description, 600), id=description),
        first,
        [_shape(shape) for shape in figure.shapes],
        viewBox=f"0 0 {_short(figure.width)} {_short(figure.height)}",
        role="img",
        aria_labelledby=f"{title} {description}",
        **attributes,
    )


def _shape(shape: Shape) -> Markup:
    if isinstance(shape, Text):
        turned = f"rotate({_short(shape.turned)} {_short(shape.x)} {_short(shape.y)})"
        return element(
            "text",
            shape.text,
            x=_short(shape.x),
            y=_short(shape.y),
            class_=f"f-{shape.tone}",
            font_size=_short(shape.size),
            font_weight=600 if shape.bold else None,
            text_anchor=None if shape.anchor == "start" else shape.anchor,
            transform=turned if shape.turned else None,
        )
    said = [element("title", clipped(shape.label, 160))] if shape.label else []
    if isinstance(shape, Box):
        return element(
            "rect",
            *said,
            x=_short(shape.x),
            y=_short(shape.y),
            width=_short(max(shape.width, 0)),
            height=_short(max(shape.height, 0)),
            class_=f"f-{shape.tone}",
            fill_opacity=None if shape.opacity == 1 else _short(shape.opacity),
        )
    if isinstance(shape, Stroke):
        return element(
            "polyline",
            *said,
            points=" ".join(f"{_short(x)},{_short(y)}" for x, y in shape.points),
            fill="none",
            class_=f"s-{shape.tone}",
            stroke_width=_short(shape.width),
            stroke_dasharray="5 4" if shape.dashed else None,
            stroke_linejoin="round",
        )
    if isinstance(shape, Dot):
        return _dot(shape, said)
    bend = (shape.left + shape.right) / 2
    over = f"C{_short(bend)} {{}} {_short(bend)} {{}} {{}} {{}}"
    low_left, low_right = shape.top_left + shape.height, shape.top_right + shape.height
    way = (
        f"M{_short(shape.left)} {_short(shape.top_left)}"
        + over.format(*map(_short, (shape.top_left, shape.top_right, shape.right, shape.top_right)))
        + f"L{_short(shape.right)} {_short(low_right)}"
        + over.format(*map(_short, (low_right, low_left, shape.left, low_left)))
        + "Z"
    )
    return element(
        "path", *said, d=way, class_=f"f-{shape.tone}", fill_opacity=_short(shape.opacity)
    )


def _dot(dot: Dot, said: list[Markup]) -> Markup:
    r = dot.radius
    if dot.shape == "circle":
        return element(
            "circle", *said, cx=_short(dot.x), cy=_short(dot.y), r=_short(r), class_=f"f-{dot.tone}"
        )
    corners = (
        [(-r, -r), (r, -r), (r, r), (-r, r)]
        if dot.shape == "square"
        else [(0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)]
    )
    points = " ".join(f"{_short(dot.x + x)},{_short(dot.y + y)}" for x, y in corners)
    return element("polygon", *said, points=points, class_=f"f-{dot.tone}")


def _short(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def properties(colours: dict[str, str]) -> str:
    """Colours as custom properties of a style sheet.

    Example:
        >>> properties({"ink": "#000"})
        '--ink:#000'
    """
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())


def classes() -> str:
    """What the shapes of a figure look like, as a style sheet."""
    tones = [name for name in LIGHT if name != "ground"]
    rules = [f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}" for name in tones]
    return "".join(rules)
