"""Write what the fuzzers tried into docs/security.md, from the counts that they leave.

python -m tests.fuzz.rules --count 1000 --json counts/rules.json
python -m tests.fuzz.ensembles --count 1000 --json counts/ensembles.json
python -m tests.fuzz.tried counts/*.json
"""

import json
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = (f"<!-- tried: written by code, {end} -->" for end in ("begin", "end"))


def table(counts: list[dict[str, Any]]) -> str:
    """The counts as a table."""
    lines = [
        "| fuzzer | cases | commands | ended (how often) | failures |",
        "|---|---|---|---|---|",
    ]
    for found in counts:
        ended = ", ".join(f"{how}: {often:,}" for how, often in sorted(found["ended"].items()))
        commands = f"{found['commands']:,}" if "commands" in found else ""
        lines.append(
            f"| `tests.fuzz.{found['name']}` | {found['cases']:,} | {commands} | {ended} "
            f"| {len(found['failures']):,} |"
        )
    return "\n".join(lines)


def main() -> None:
    counts = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(counts)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
