"""A small project for schedulers, made by the commands alone: dynsnap is not imported here."""

import json
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs/examples"
_MAKE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.project.made import make, week
week(Path(sys.argv[2]) / "data", 1) if sys.argv[3:] else make(Path(sys.argv[2]), weeks=1)
"""


def _made(folder, *more):
    python = Path(shutil.which("dynsnap")).with_name("python")
    subprocess.run([python, "-c", _MAKE, str(ROOT), str(folder), *more], check=True)


def made_project(folder):
    """A project with the rows of one week."""
    _made(folder)
    return folder


def fail_the_gate(folder):
    """Let the rows of another week arrive, and rules that no model fulfils."""
    _made(folder, "another week")
    rule = '[[rule]]\nmetric = "accuracy"\nat_least = 0.9999\n'
    (folder / "gate.toml").write_text(rule)


def deployed(folder):
    """The deployed generation."""
    status = ["dynsnap", "project", "status", str(folder), "--json"]
    made = subprocess.run(status, capture_output=True, text=True, check=True)
    return json.loads(made.stdout)["deployed"]
