"""What a task costs beside its training: rounds that take next to no time, one to a task.

    python benchmarks/overhead.py [--rounds 200] [--engines processes ray]

One worker, started before the clock. What passes beyond the training itself, which the worker
times, is the engine's: to hand out a task, to send the round back (`--scores` of 8 bytes each), to
take it. The load is that of the last minute.
"""

import argparse
import dataclasses
import os
import time

import numpy as np

from dynsnap.data import digits_stream
from dynsnap.engine import ProcessesEngine, RayEngine, Rules
from dynsnap.ensemble import Recipe, RoundSpec, Schedule, serial
from dynsnap.testing import CentroidTrainer

ENGINES = {"processes": ProcessesEngine, "ray": RayEngine}


class Trainer(CentroidTrainer):
    """Rounds of one epoch whose scores are as large as asked."""

    def __init__(self, scores: int) -> None:
        super().__init__(digits_stream())
        self.made = np.full((1, scores // 10, 10), 0.1)

    def train(self, specs, /):
        for done in super().train(specs):
            yield dataclasses.replace(done, scores={"test": self.made.copy()})


def beside(engine, trainer, specs) -> float:
    """Seconds for each round, beside its training."""
    start = time.perf_counter()
    training = sum(done.seconds for done in engine(trainer, specs))
    return (time.perf_counter() - start - training) / len(specs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--scores", type=int, nargs="+", default=[2_000, 1_000_000])
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    options = parser.parse_args()
    recipe = Recipe(schedule=Schedule("constant"), epochs=1, snapshots=1)
    specs = [RoundSpec(recipe=recipe, generation=1, index=index) for index in range(options.rounds)]
    for scores in options.scores:
        trainer = Trainer(scores)
        alone = 1000 * beside(serial, trainer, specs)
        print(f"{scores:,} scores in a round; in this process {alone:.1f} ms beside training")
        for name in options.engines:
            with ENGINES[name](workers=1, rules=Rules(together=1)) as engine:
                beside(engine, trainer, specs[:5])
                each = 1000 * beside(engine, trainer, specs)
            print(f"  {name}: {each:.1f} ms for each task, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
