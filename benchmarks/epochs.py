"""How fast rounds side by side trained, from a log of when their epochs ended.

    python benchmarks/epochs.py benchmarks/epochs/*.csv.gz

Between the ends of two epochs a round is taken to go on evenly. Three figures: while all rounds
were active, from the first end of an epoch to the last, and from the start of the log. Validation
and snapshots are in all of them; the second has the building of narrower networks and scoring, too,
and lacks each round's first epoch; the third lacks nothing up to the last epoch.
"""

import argparse
import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Logged:
    """What a log tells.

    Attributes:
        rounds: How many rounds it has.
        active: Seconds in which all of them were active.
        active_speed: Images a second in these.
        seconds: From the first end of an epoch to the last.
        speed: Images a second in these.
        whole: From the start of the log to the last end of an epoch.
        whole_speed: Images a second in these.
        pauses: The two longest times in which no epoch ended, in their order: what stands still
            while rounds that have ended are scored, and while a network is built.
    """

    rounds: int
    active: float
    active_speed: float
    seconds: float
    speed: float
    whole: float
    whole_speed: float
    pauses: tuple[float, ...]


def read(path: Path) -> Logged:
    """The speeds of a log: `seconds,round,generation,epoch,images`, a row for each epoch."""
    ends, images = _epochs(path)

    def done(second: float) -> float:
        """Images that all rounds have trained on by then, since the end of their first epochs."""
        return sum(
            images[name] * float(np.interp(second, times, range(len(times))))
            for name, times in ends.items()
        )

    start, stop = (max(one[0] for one in ends.values()), min(one[-1] for one in ends.values()))
    first, last = min(one[0] for one in ends.values()), max(one[-1] for one in ends.values())
    if stop <= start:
        raise SystemExit(f"{path}: there is no time in which all rounds were active.")
    gaps = np.diff(sorted(time for times in ends.values() for time in times))
    return Logged(
        rounds=len(ends),
        active=stop - start,
        active_speed=(done(stop) - done(start)) / (stop - start),
        seconds=last - first,
        speed=done(last) / (last - first),
        whole=last,
        whole_speed=sum(images[name] * len(times) for name, times in ends.items()) / last,
        pauses=tuple(float(gaps[at]) for at in sorted(np.argsort(gaps)[-2:])),
    )


def _epochs(path: Path) -> tuple[dict[str, list[float]], dict[str, int]]:
    """When the epochs of each round ended, and the images of one."""
    ends: dict[str, list[float]] = defaultdict(list)
    images: dict[str, int] = {}
    try:
        with gzip.open(path, "rt", newline="") as file:
            for row in csv.DictReader(file):
                name, number = row["round"], int(row["images"])
                ends[name].append(float(row["seconds"]))
                if int(row["epoch"]) != len(ends[name]):
                    raise ValueError(f"the epochs of round {name} are not 1, 2, 3 and so on")
                if number <= 0 or images.setdefault(name, number) != number:
                    raise ValueError(f"the epochs of round {name} are not all of as many images")
        for name, times in ends.items():
            if not (np.isfinite(times).all() and (np.diff([0, *times]) > 0).all()):
                raise ValueError(f"the seconds of round {name} do not rise")
        if not ends:
            raise ValueError("there are no epochs")
    except KeyError as missing:
        raise SystemExit(f"{path}: this is no log of epochs, it has no column {missing}.") from None
    except (OSError, EOFError, TypeError, ValueError) as error:
        raise SystemExit(f"{path}: this is no log of epochs: {error}.") from None
    return ends, images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="+", type=Path)
    for path in parser.parse_args().logs:
        found = read(path)
        print(
            f"{path.name}: {found.rounds} rounds, {found.active_speed:,.0f} images a second over "
            f"{found.active:.0f} s with all active, {found.speed:,.0f} over {found.seconds:.0f} s, "
            f"{found.whole_speed:,.0f} over {found.whole:.0f} s with building; "
            f"no epoch ended for {' and '.join(f'{one:.0f}' for one in found.pauses)} s"
        )


if __name__ == "__main__":
    main()
