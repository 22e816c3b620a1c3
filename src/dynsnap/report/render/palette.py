"""The one palette: Okabe and Ito's colours, which colour-blind people can tell apart.

Dark ones are lighter versions of the same hues, for the same contrast on a dark ground.
"""

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
