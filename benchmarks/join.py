"""What it takes to line up files whose ids are in another order, beside DuckDB's ordered join.

    pip install duckdb
    python benchmarks/join.py [--rows 5_000_000 20_000_000]

Writes two generations of Parquet (id, truth, 10 float32 scores), the newer one shuffled. Then two
processes for each number of rows give all rows in the order of the older file, a batch at a time:
`predictions.stream`, which also finds the names of classes and checks every id and score, and one
query of DuckDB, which does not, with a limit on its memory and one thread. Prints CPU time, not
wall time, and highest resident memory. Ends with 1 where ours passes the limit on memory or on the
ratio, or where the two give different rows.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import memory
import numpy as np

MEMORY_MB = 1500
RATIO = 1.3
DUCKDB_MB = 1000  # of memory that DuckDB gives itself; its process takes some more
BATCH = 1 << 17
QUERY = """
SELECT a.* EXCLUDE (place), b.*
FROM (SELECT *, file_row_number AS place FROM read_parquet($old, file_row_number = true)) a
JOIN read_parquet($new) b ON a.id = b.id
ORDER BY a.place
"""


def main() -> int:
    """Measure both ways for every number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--folder", type=Path, help="where to put the files, removed in the end")
    parser.add_argument("--give", nargs=3, metavar=("WAY", "OLD", "NEW"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.give:
        return give(*options.give)
    print("| rows | DuckDB's query | `stream` | ratio | limit | DuckDB's memory | ours | limit |")
    print("|---|---|---|---|---|---|---|---|")
    bad = False
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="dynsnap-join-rows-", dir=options.folder) as folder:
            bad |= not measure(Path(folder), rows)
    return int(bad)


def measure(folder: Path, rows: int) -> bool:
    """Print a line; say whether all is well."""
    old = memory.write(folder / "old.parquet", memory.in_order(rows), generation=1)
    new = memory.write(folder / "new.parquet", memory.shuffled(rows), generation=2)
    found = {}
    for way in ("duckdb", "stream"):
        command = [sys.executable, __file__, "--give", way, str(old), str(new)]
        environment = os.environ | {"TMPDIR": str(folder)}
        said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found[way] = json.loads(said.stdout)
    theirs, ours = found["duckdb"], found["stream"]
    ratio = ours["cpu"] / theirs["cpu"]
    print(
        f"| {rows:,} | {theirs['cpu']:.1f} s | {ours['cpu']:.1f} s | {ratio:.2f} | {RATIO} "
        f"| {theirs['mb']:,.0f} MB | {ours['mb']:,.0f} MB | {MEMORY_MB:,} MB |",
        flush=True,
    )
    if ours["rows"] != theirs["rows"]:
        print("The two give DIFFERENT rows.")
        return False
    return bool(ratio <= RATIO and ours["mb"] <= MEMORY_MB)


def give(way: str, old: str, new: str) -> int:
    """Go through all rows in this process, and print what it took."""
    rows = through_duckdb(old, new) if way == "duckdb" else through_stream(old, new)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"rows": rows, "cpu": usage.ru_utime + usage.ru_stime, "mb": highest_mb()}))
    return 0


def highest_mb() -> float:
    """Highest resident memory of this process. `ru_maxrss` begins at that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 / 1e6


def through_duckdb(old: str, new: str) -> list[int]:
    """A checksum of every column of scores, as DuckDB orders them."""
    import duckdb

    sums = [0] * 2 * memory.CLASSES
    settings: dict[str, Any] = {"memory_limit": f"{DUCKDB_MB}MB", "threads": 1}
    with tempfile.TemporaryDirectory() as folder:
        base = duckdb.connect(config=settings | {"temp_directory": folder})
        base.execute("SET enable_progress_bar = false")
        made = base.sql(QUERY, params={"old": old, "new": new})
        for batch in made.to_arrow_reader(BATCH):
            columns = [c for c, n in zip(batch, batch.schema.names, strict=True) if "score" in n]
            add(sums, [column.to_numpy() for column in columns])
        base.close()
    return sums


def through_stream(old: str, new: str) -> list[int]:
    """The same of our own join."""
    from dynsnap.predictions import stream

    sums = [0] * 2 * memory.CLASSES
    with stream([old, new], rows_at_once=BATCH) as blocks:
        for block in blocks:
            scores = [each.scores for each in block if each.scores is not None]
            add(sums, [column for some in scores for column in some.T])
    return sums


def add(sums: list[int], columns: list[Any]) -> None:
    """Go on with the checksums of columns."""
    for place, column in enumerate(columns):
        sums[place] = zlib.crc32(np.ascontiguousarray(column, np.float32), sums[place])


if __name__ == "__main__":
    sys.exit(main())
