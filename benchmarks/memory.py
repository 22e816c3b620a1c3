"""How much memory and time it takes to compare files that are larger than memory.

    python benchmarks/memory.py [--rows 100_000_000]

Writes two generations of predictions to a temporary folder, the newer one twice: with its ids in
the order of the older one, and in another. Then runs `dynsnap compare` on them, each time in a
process of its own, and prints its highest resident memory (imports included) and its CPU time.
Ends with 1 where a limit is passed, or where the order of the ids changes the result.
"""

import argparse
import json
import math
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

CLASSES = 10
ROW_GROUP = 1 << 20
LIMITS = {"same order": 600, "another order": 1500}  # MB

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Usage:
    """What one process took."""

    peak_mb: float
    cpu_s: float


def main() -> int:
    """Write the files, measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of each generation")
    parser.add_argument("--folder", type=Path, help="where to put the files, removed in the end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dynsnap-memory-", dir=options.folder) as folder:
        os.environ["TMPDIR"] = folder  # what is spilled goes to the same disk
        return measure(Path(folder), options.rows)


def measure(folder: Path, rows: int) -> int:
    """Compare files of so many rows, and say whether all is well: 0, or 1."""
    files = {
        "old": write(folder / "old.parquet", in_order(rows), generation=1),
        "same order": write(folder / "new.parquet", in_order(rows), generation=2),
        "another order": write(folder / "shuffled.parquet", shuffled(rows), generation=2),
    }
    size = files["old"].stat().st_size / 1e9
    print(
        f"{rows:,} rows × {CLASSES} float32 scores, id and truth; {size:.2f} GB of Parquet per "
        f"generation. {os.cpu_count()} cores, Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("numpy", "pyarrow", "numba"))
        + ".\n"
    )
    print("| ids of the two generations | highest resident memory | limit | CPU time |")
    print("|---|---|---|---|")
    bad = False
    results = []
    for order, limit in LIMITS.items():
        result = folder / "result.json"
        usage = run("compare", files["old"], files[order], "--json", result, "--quiet")
        results.append(json.loads(result.read_text())["pairs"][0]["metrics"])
        print(
            f"| in {'the ' if order == 'same order' else ''}{order} | {usage.peak_mb:,.0f} MB "
            f"| {limit:,} MB | {usage.cpu_s:,.1f} s |",
            flush=True,
        )
        bad |= usage.peak_mb > limit
    alike = results[0] == results[1]
    print(f"\nBoth give {'the same' if alike else 'DIFFERENT'} values, to the last digit.")
    return int(bad or not alike)


def run(*arguments: str | Path) -> Usage:
    """Run a dynsnap command in a process of its own."""
    command = [str(Path(sys.executable).with_name("dynsnap")), *map(str, arguments)]
    process = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise SystemExit(f"`dynsnap {arguments[0]}` failed.")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, else KiB
    return Usage(usage.ru_maxrss * unit / 1e6, usage.ru_utime + usage.ru_stime)


def write(path: Path, ids: Iterator[Ids], *, generation: int) -> Path:
    """Write predictions of these inputs, a row group at a time."""
    names = pa.array([f"class {place}" for place in range(CLASSES)])
    columns = {f"score:{name}": pa.float32() for name in names.to_pylist()}
    schema = pa.schema({"id": pa.int64(), "truth": pa.string(), **columns})
    # Scores hardly repeat: trying to make a dictionary of them costs time and gives nothing.
    with pq.ParquetWriter(path, schema, use_dictionary=["truth"]) as writer:
        for some in ids:
            truth = (mixed(some, salt=0) * CLASSES).astype(np.int32)
            scores = scores_of(some, truth, generation=generation)
            table = {"id": some, "truth": names.take(pa.array(truth))}
            table |= {name: scores[place] for place, name in enumerate(columns)}
            writer.write_table(pa.table(table, schema=schema), row_group_size=ROW_GROUP)
    return path


def scores_of(ids: Ids, truth: npt.NDArray[np.int32], *, generation: int) -> list[pa.Array]:
    """Scores of each class: most of them right, and much the same in every generation."""
    raised = []
    for place in range(CLASSES):
        easy = mixed(ids, salt=1 + place)
        luck = mixed(ids, salt=(1 + generation) * 100 + place)
        raised.append(np.exp(3 * easy + 1.5 * luck + 2 * (truth == place)))
    total = sum(raised)
    return [pa.array((each / total).astype(np.float32)) for each in raised]


def mixed(ids: Ids, *, salt: int) -> npt.NDArray[np.float64]:
    """A number from 0 to 1 for each id that looks random (splitmix64)."""
    value = (ids.astype(np.uint64) + np.uint64(salt << 40)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (value >> np.uint64(11)).astype(np.float64) / 2**53


def in_order(rows: int) -> Iterator[Ids]:
    """All ids, ascending."""
    for start in range(0, rows, ROW_GROUP):
        yield np.arange(start, min(start + ROW_GROUP, rows))


def shuffled(rows: int) -> Iterator[Ids]:
    """All ids, each once, in an order that looks random, without holding all of them."""
    bits = max(2, math.ceil(math.log2(rows)))
    mask = np.int64((1 << bits) - 1)
    for some in in_order(1 << bits):
        # Both steps map the numbers of so many bits onto themselves, one to one.
        for factor in (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35):
            some = (some * (factor & int(mask) | 1)) & mask
            some ^= some >> np.int64(bits // 2)
        yield some[some < rows]


if __name__ == "__main__":
    sys.exit(main())
