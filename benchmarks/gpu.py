"""Rounds side by side on one GPU: member-images per second, as a real study trains them.

    python benchmarks/gpu.py --rounds 12 36 --epochs 3
    python benchmarks/gpu.py --model resnet56 --batch 32 --rounds 24
    python benchmarks/gpu.py --way streams --rounds 12

Rounds of the paper's three sizes, both schedules, augmentation, validation after every epoch and
snapshots, on images of random bytes: how fast they train does not depend on what they show. "bare"
counts the captured steps alone, "study" everything but building, which is shown beside.
"""

import argparse
import time

import numpy as np
import torch

from dynsnap.data import Pool, Stream
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.train import Adam, ShiftsAndFlips, TorchTrainer
from dynsnap.train import _trainer as trainer_module
from dynsnap.train.models import by_name

SIZES = {10: (24_400, 30_500, 32_500), 100: (37_500, 46_875, 47_375)}


class Clock:
    """Takes the times apart that a study adds up."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.built = self.steps = 0.0
        self.images = 0

    def stepper(self, *arguments, **settings):
        """What the trainer would build, with clocks on it."""
        if self.way == "streams":
            settings["grouped"] = False
        start = time.perf_counter()
        stepper = BUILD(*arguments, **settings)
        assert stepper is not None, "the steps could not be captured"
        torch.cuda.synchronize()
        self.built = time.perf_counter() - start
        advance = stepper.advance

        def timed(lanes, steps, /):
            begun = time.perf_counter()
            advance(lanes, steps)
            torch.cuda.synchronize()
            self.steps += time.perf_counter() - begun
            self.images += sum(lane.batch for lane in lanes) * steps

        stepper.advance = timed
        return stepper


BUILD = trainer_module.side_by_side


def made_stream(classes: int, share: float) -> Stream:
    """Images of random bytes in the paper's sizes, or a share of them."""
    rng = np.random.default_rng(0)
    sizes = [int(size * share) + 450 * 10 for size in SIZES[classes]]
    labels = np.arange(sizes[-1]) % classes
    pool = Pool(
        name="bytes",
        inputs=rng.integers(0, 256, (sizes[-1], 32, 32, 3), dtype=np.uint8),
        labels=labels,
        classes=tuple(map(str, range(classes))),
        ids=np.arange(sizes[-1]),
    )
    return Stream(
        pool=pool,
        generations=tuple(np.arange(size) for size in sizes),
        validation=tuple(np.full(classes, 4500 // classes) for _ in sizes),
        evaluation={"test": pool.take(np.arange(500), name="test")},
    )


def specs(rounds: int, epochs: int) -> list[RoundSpec]:
    """Rounds of all generations and both schedules."""
    step = Recipe(schedule=Schedule("step"), epochs=epochs, snapshots=2)
    cyclic = Recipe(schedule=Schedule("cyclic"), epochs=epochs, snapshots=2, selection="window")
    return [
        RoundSpec(recipe=(step, cyclic)[i % 2], generation=1 + i % 3, index=i)
        for i in range(rounds)
    ]


def measure(arguments: argparse.Namespace, rounds: int) -> None:
    classes = 100 if arguments.model == "resnet56" else 10
    clock = Clock(arguments.way)
    trainer_module.side_by_side = clock.stepper
    trainer = TorchTrainer(
        made_stream(classes, arguments.share),
        model=by_name(arguments.model),
        optimizer=Adam(eps=1e-7, kernel_penalty=1e-4),
        augment=ShiftsAndFlips(),
        batch_size=arguments.batch,
        keep_weights=False,
    )
    start = time.perf_counter()
    for _ in trainer.train(specs(rounds, arguments.epochs)):
        pass
    whole = time.perf_counter() - start - clock.built
    memory = torch.cuda.max_memory_allocated() / 2**30
    print(
        f"| {arguments.model} | {arguments.batch} | {arguments.way} | {rounds} | "
        f"{clock.images / clock.steps / 1e3:.0f} | {clock.images / whole / 1e3:.0f} | "
        f"{clock.built:.0f} s | {memory:.1f} GiB |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, nargs="+", default=[12])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the paper's training images")
    parser.add_argument("--way", choices=["grouped", "streams"], default="grouped")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This measures a GPU, and there is none here.")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, thousands per second")
    print("| model | batch | way | rounds | bare | study | building | memory |")
    print("|---|---|---|---|---|---|---|---|")
    for rounds in arguments.rounds:
        measure(arguments, rounds)


if __name__ == "__main__":
    main()
