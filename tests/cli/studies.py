"""Small studies for the tests of the commands, and what is left of their runs."""

import sys
from pathlib import Path

import dynsnap as package
from tests.cli.helpers import dynsnap

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


def run_to_the_end(folder, name, study):
    """The run folder of a study that was run to its end, and how the command ended."""
    (folder / f"{name}.toml").write_text(study)
    ended = dynsnap("run", folder / f"{name}.toml", "--out", folder / "run")
    assert ended.exit_code == 0, ended.stderr
    return folder / "run", ended


def contents(folder):
    """Every prediction file of a run, by name."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted((folder / "predictions").rglob("*.parquet"))
    }
