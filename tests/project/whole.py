"""Check a finished `dynsnap demo weekly`, as `make demo-weekly` does.

Run it with `python -m tests.project.whole FOLDER WEEKS`.
"""

import re
import sys
from pathlib import Path

from dynsnap import project as projects


def check(folder: Path, weeks: int) -> str:
    """Raise unless every week has a result, every generation its files, and the page all of it."""
    results = list(projects.results(folder))
    assert len(results) == weeks, f"{len(results)} of {weeks} weeks have a result"
    assert {each.decision for each in results} <= {"first", "promoted", "kept"}
    registry = projects.FolderRegistry(folder / "registry")
    numbers = [registry.checked(number)[0].number for number in registry.numbers()]
    assert numbers == list(range(1, weeks + 1)), f"generations {numbers}"
    pointer = registry.deployed()
    assert pointer is not None
    moved = [each.measured.generation for each in results if each.decision != "kept"]
    assert [move.to for move in pointer.moves] == moved, "the pointer and the results differ"
    for each in results:
        place = folder / "retrains" / each.plan.name
        left = {file.name for file in place.iterdir()}
        reports = {"report.html", "report.md", "gate.json", "junit.xml"}
        assert left == {*reports, "plan.json", "measured.json", "result.json"}, (place, left)
    page = (folder / projects.HISTORY).read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
    assert page.count("<figure") == page.count("<svg") == 3
    missing = [each.plan.period for each in results if each.plan.period not in page]
    assert not missing, f"not on the page: {missing}"
    fetched = re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*""", page)
    assert not fetched, f"the page asks for {fetched}"
    return f"{weeks} weeks, generation {pointer.generation} is deployed, the page is whole."


if __name__ == "__main__":
    print(check(Path(sys.argv[1]), int(sys.argv[2])))
