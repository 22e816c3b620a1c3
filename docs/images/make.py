"""Draws the picture on the front page: the head of a comparison as a terminal shows it.

python docs/images/make.py
"""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).parent
COMMAND = ["dynsnap", "compare", "examples/old.parquet", "examples/new.parquet"]
THEME = TerminalTheme(
    (250, 250, 248),
    (40, 44, 52),
    [(40, 44, 52), (178, 34, 52), (0, 110, 80), (150, 100, 0), (30, 90, 160), (120, 60, 140),
     (0, 115, 130), (90, 95, 105)],
)  # fmt: skip


def main() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", *COMMAND],
        cwd=HERE.parents[1],
        env={**os.environ, "COLUMNS": "84"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    head = shown.partition("\nEach generation")[0].rstrip()
    console = Console(record=True, width=80, file=io.StringIO(), color_system="truecolor")
    console.print(Text("$ " + " ".join(COMMAND), style="bold"))
    console.print(Text.from_ansi(head))
    svg = console.export_svg(title="dynsnap compare", theme=THEME)
    # The picture must not load anything: the reader's own typewriter face will do.
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.S)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    (HERE / "compare.svg").write_text(svg)


if __name__ == "__main__":
    main()
