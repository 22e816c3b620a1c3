"""Small studies for the tests of the commands, and ways to run the command line."""

import subprocess
import sys
import time

from click.testing import CliRunner

from dynsnap.cli import cli

TINY = """
[study]
name = "tiny"
resamples = 30

[data.growth]
fractions = [0.6, 1.0]
late = { 6 = 2 }

[model]
name = "mlp"
hidden = [8]

[training]
epochs = 8
batch_size = 64
learning_rate = 0.01
device = "cpu"

[methods]
names = ["singlebase", "dynsnap-cyc"]
combinations = ["average"]
members = 2
snapshots = 2
"""

# Saves its state after every epoch, so that it can be killed at any moment of a round.
LONG = TINY.replace("epochs = 8", "epochs = 24\ncheckpoint_every = 0")

COMMAND = [sys.executable, "-c", "from dynsnap.cli import main; main()"]


def dynsnap(*arguments):
    """Run a command in this process."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def started(*arguments, cwd):
    """Start the real command line, as a process of its own."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(happens, process):
    """Wait for something that a process does, however long it takes; fail if it ends before."""
    while not happens():
        # It may have happened just before the end.
        assert process.poll() is None or happens(), process.communicate()
        time.sleep(0.01)


def contents(folder):
    """Every prediction file of a run, by name."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted((folder / "predictions").rglob("*.parquet"))
    }
