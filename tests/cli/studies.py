"""Small studies for the tests of the commands, and ways to run the real command line."""

import subprocess
import sys
import time

TINY = """
[study]
name = "tiny"

[model]
name = "mlp"
hidden = [8]

[training]
epochs = 12
batch_size = 64
learning_rate = 0.01
device = "cpu"

[methods]
names = ["singlebase", "dynsnap-cyc"]
combinations = ["average"]
members = 4
snapshots = 4
"""

# Long enough to be stopped in the middle, and saving its state after every epoch.
LONG = TINY.replace("epochs = 12", "epochs = 120\ncheckpoint_every = 0")

COMMAND = [sys.executable, "-c", "from dynsnap.cli import main; main()"]


def dynsnap(*arguments, cwd):
    """Run the real command line to its end."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def started(*arguments, cwd):
    """Start the real command line."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(happens, process, seconds=60):
    """Wait for something that a process does; fail if it ends before."""
    end = time.monotonic() + seconds
    while not happens():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


def contents(folder):
    """Every prediction file of a run, by name."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted((folder / "predictions").rglob("*.parquet"))
    }
