"""Draws the pictures of the documentation: a terminal, and pages as a browser shows them.

    python docs/images/make.py cifar-10-batches-py
    python docs/images/make.py weekly     # the history of `dynsnap demo weekly` alone

The pages show the shipped results of CIFAR-10, with lost images from that folder. They need
playwright and Debian's chromium, as `make test-browser` installs them.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

import dynsnap
from dynsnap import report

HERE = Path(__file__).parent
OLD, NEW = (f"examples/{name}.parquet" for name in ("old", "new"))
RESULTS = "results/cifar10-paper"
COMMAND = ["dynsnap", "compare", OLD, NEW]
WIDTH = 96
THEME = TerminalTheme(
    (250, 250, 248),
    (40, 44, 52),
    [(40, 44, 52), (178, 34, 52), (0, 110, 80), (150, 100, 0), (30, 90, 160), (120, 60, 140),
     (0, 115, 130), (90, 95, 105)],
)  # fmt: skip


def ran(*command: str) -> str:
    """What a command prints, in the project's folder."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=command[1] != "gate",  # the gate of the picture fails, as it should
    ).stdout


def terminal() -> None:
    found = dynsnap.compare(HERE.parents[1] / OLD, HERE.parents[1] / NEW)
    # As a terminal shows it: what the command prints into a pipe has no colours.
    told = report.to_terminal(report.comparison_document(found), width=WIDTH, colour=True)
    head = told.partition("Old, new and change")[0].rpartition("\n")[0].rstrip()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), color_system="truecolor")
    console.print(Text("$ " + " ".join(COMMAND), style="bold"))
    console.print(Text.from_ansi(head))
    svg = console.export_svg(title="dynsnap compare", theme=THEME)
    # The picture must not load anything: the reader's own typewriter face will do.
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.S)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    (HERE / "compare.svg").write_text(svg)


def of(method: str) -> list[str]:
    """The predictions of a method before and after its last retrain."""
    return [f"{RESULTS}::{method}/average/g{number}/r0" for number in (2, 3)]


def pages(images: Path, folder: Path) -> None:
    inputs = ["--inputs", f"cifar-10:{images.resolve()}"]
    rules = ["--at-most", "lost=0.04", "--at-least", "correct_consistency=0.82"]
    for name, command in {
        "compare": ["compare", *of("dynsnap-cyc"), "--names", "generation 2,generation 3", *inputs],
        "gate": ["gate", *of("singlebase"), *rules],
        "study": ["report", RESULTS],
    }.items():
        ran("dynsnap", *command, "-q", "--html", str(folder / f"{name}.html"))
    shots = (
        # name, page, colours, where the window starts, its height
        ("compare", "compare", "light", "body", 900),
        ("gate", "gate", "dark", "body", 900),
        ("study", "study", "light", "#cost", 900),
        ("inputs", "compare", "light", "#inputs", 750),  # the notes would show the folder's path
    )
    photograph(shots, folder)


def weekly(folder: Path) -> None:
    ran("dynsnap", "demo", "weekly", "--out", str(folder), "-q")
    photograph([("weekly", "history", "light", "body", 1000)], folder)


def photograph(shots: Iterable[tuple[str, str, str, str, int]], folder: Path) -> None:
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for name, source, scheme, start, height in shots:
            page = browser.new_page(
                viewport={"width": 1200, "height": height},
                color_scheme=scheme,
                reduced_motion="reduce",
            )
            page.goto((folder / f"{source}.html").as_uri())
            page.locator(start).first.evaluate("one => one.scrollIntoView()")
            shot = Image.open(io.BytesIO(page.screenshot()))
            few = shot.convert("RGB").quantize(256, kmeans=4)
            few.save(HERE / f"page-{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        if sys.argv[1:] == ["weekly"]:
            weekly(Path(made))
        else:
            terminal()
            if len(sys.argv) > 1:
                pages(Path(sys.argv[1]), Path(made))
