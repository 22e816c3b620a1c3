"""How long a study takes with each engine: 16 rounds of at least five seconds on two cores.

    python benchmarks/engines.py [--rounds 16] [--seconds 5] [--engines processes ray]

Every engine trains the same rounds of a small convolutional network, one torch thread each, in this
one run; wall times are given as shares of the serial one. Workers are started, and Ray too, by one
short round before the clock starts. The results are compared bit by bit. The load is that of the
last minute, at the end of each part: well above the engine's own workers, it means that others were
at work too, and the shares say little.
"""

import argparse
import functools
import os
import time

import torch

from dynsnap.data import digits_stream
from dynsnap.engine import ProcessesEngine, RayEngine
from dynsnap.ensemble import Recipe, RoundSpec, Schedule, serial
from dynsnap.testing import assert_same_round
from dynsnap.train import TorchTrainer
from dynsnap.train.models import cnn

ENGINES = {"processes": ProcessesEngine, "ray": RayEngine}


def rounds_of(epochs: int, count: int) -> list[RoundSpec]:
    recipe = Recipe(schedule=Schedule("constant"), epochs=epochs, snapshots=1)
    return [RoundSpec(recipe=recipe, generation=3, index=index) for index in range(count)]


def timed(engine, trainer, specs):
    """The rounds, and the seconds that they took."""
    start = time.perf_counter()
    done = {one.spec: one for one in engine(trainer, specs)}
    return done, time.perf_counter() - start


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0, help="least time of one round")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    trainer = TorchTrainer(
        digits_stream(), model=functools.partial(cnn, width=16), batch_size=64, device="cpu"
    )
    timed(serial, trainer, rounds_of(1, 1))  # what only the first round pays
    probe = 4
    _, seconds = timed(serial, trainer, rounds_of(probe, 1))
    epochs = int(options.seconds / seconds * probe * 1.2) + 1
    specs = rounds_of(epochs, options.rounds)
    expected, alone = timed(serial, trainer, specs)
    each = alone / options.rounds
    print(f"{options.rounds} rounds of {each:.1f} s ({epochs} epochs)")
    print(f"serial: {alone:.1f} s, {load()}")
    if each < options.seconds:
        print(f"(rounds came out shorter than {options.seconds:g} s: the machine is busy)")
    for name in options.engines:
        with ENGINES[name](workers=options.workers) as engine:
            start = time.perf_counter()
            timed(engine, trainer, rounds_of(1, 2 * options.workers))
            started = time.perf_counter() - start
            found, wall = timed(engine, trainer, specs)
        for spec, done in expected.items():
            assert_same_round(found[spec], done)
        print(
            f"{name}: {wall:.1f} s, {wall / alone:.2f} of serial on {options.workers} workers "
            f"(started in {started:.1f} s; every round the same bits), {load()}"
        )


if __name__ == "__main__":
    main()
