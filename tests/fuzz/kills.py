"""Ends commands by signals at drawn moments, and counts how they end and what they leave.

python -m tests.fuzz.kills --count 100 --json counts/kills.json

Each case starts a command in a process of its own and sends it a signal at a drawn share of the
time that it takes alone. Whatever the moment: the outputs are whole or not there, the exit code is
0, 4 or the signal's own, no traceback is printed, and the same command run again succeeds and
leaves no file but its outputs. Only what SIGKILL ended may leave files aside until then.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
OLD, NEW = (ROOT / "examples" / f"{name}.parquet" for name in ("old", "new"))
COMMANDS = {
    "compare": ("compare", OLD, NEW, "-q", "--json", "out/a.json", "--html", "out/b.html"),
    "gate": ("gate", OLD, NEW, "-q", "--at-most", "lost=0.1", "--markdown", "out/a.md"),
    "stabilize": ("stabilize", OLD, NEW, "-o", "out/a.parquet"),
    "report": ("report", ROOT / "results/digits", "-q", "--html", "out/a.html", "--svg", "out/s"),
    "publish": ("publish", ROOT / "results/digits", "out/published"),
}
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)


def started(command: str, folder: Path) -> subprocess.Popen[str]:
    (folder / "out").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "dynsnap", *map(str, COMMANDS[command])],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def case(command: str, sent: signal.Signals, moment: float, whole: dict[str, bytes]) -> str:
    """How a command ended that got a signal after so many seconds; AssertionError if badly."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        process = started(command, folder)
        time.sleep(moment)
        process.send_signal(sent)
        _, said = process.communicate()
        code = process.returncode
        assert code in (0, 4, 128 + sent, -sent), (code, said)
        assert "Traceback" not in said, said
        left = contents(folder)
        seen = {name: left[name] for name in left if not Path(name).name.startswith(".")}
        if sent is not signal.SIGKILL:
            assert seen == left, sorted(left)
            assert seen.keys() in ({}.keys(), whole.keys()), sorted(seen)
        assert all(len(seen[name]) == len(whole[name]) for name in seen), sorted(seen)
        again = started(command, folder)
        _, said = again.communicate()
        assert again.returncode == 0, said
        assert contents(folder).keys() == whole.keys(), sorted(contents(folder))
        return f"{command} {sent.name} {'done' if code == 0 else 'stopped'}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills")
    parser.add_argument("--count", type=int, default=100, help="how many signals")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, required=True, help="where the counts go")
    asked = parser.parse_args()
    rng, ended, failures = random.Random(asked.seed), Counter[str](), []
    alone: dict[str, tuple[float, dict[str, bytes]]] = {}
    for command in COMMANDS:
        folder = Path(tempfile.mkdtemp())
        begun = time.monotonic()
        process = started(command, folder)
        _, said = process.communicate()
        assert process.returncode == 0, said
        alone[command] = time.monotonic() - begun, contents(folder)
        shutil.rmtree(folder)
    for number in range(asked.count):
        command, sent = rng.choice(sorted(COMMANDS)), rng.choice(SIGNALS)
        seconds, whole = alone[command]
        try:
            ended[case(command, sent, rng.random() * 1.1 * seconds, whole)] += 1
        except AssertionError as error:
            failures.append({"case": number, "command": command, "what": str(error)[:500]})
    found = {
        "name": "kills",
        "cases": asked.count,
        "commands": asked.count,
        "ended": dict(sorted(ended.items())),
        "failures": failures,
    }
    asked.json.write_text(json.dumps(found, indent=1) + "\n")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
