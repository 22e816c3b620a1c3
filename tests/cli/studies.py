"""Small studies for the tests of the commands, and ways to run the command line."""

import sys
from pathlib import Path

from click.testing import CliRunner

import dynsnap as package
from dynsnap.cli import cli

# The studies that come with dynsnap, by name.
SHIPPED = {
    path.stem: path for path in sorted((Path(package.__file__).parent / "studies").glob("*.toml"))
}

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


def contents(folder):
    """Every prediction file of a run, by name."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted((folder / "predictions").rglob("*.parquet"))
    }
