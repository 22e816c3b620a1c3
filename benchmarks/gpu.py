"""Rounds side by side on one GPU: member-inputs per second, as a real study trains them.

    python benchmarks/gpu.py --rounds 12 36 --epochs 3
    python benchmarks/gpu.py --model resnet56 --batch 32 --rounds 24
    python benchmarks/gpu.py --model resnet56 --batch 32 --rounds 24 --layers --no-combo-kernels
    python benchmarks/gpu.py --way streams --rounds 12
    python benchmarks/gpu.py --model fasttext --batch 16 --rounds 12 48 --epochs 20

Rounds of the paper's three sizes (for fastText those of 20 Newsgroups), both schedules,
augmentation of images, validation after every epoch and snapshots, on images of random bytes or
texts of random words: how fast they train does not depend on what they say. "bare" counts the
captured steps alone, "study" everything but building, which is shown beside. `--way alone` is what
a trainer does where nothing can be side by side; `--check` trains both ways, in float32 and without
augmentation, and shows how far apart their scores are. `--layers` computes residual blocks layer by
layer instead of by the fused kernels, `--no-combo-kernels` keeps torch's compiler from joining
small kernels: docs/decisions/0005 compares these.
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from dynsnap.data import Pool, Stream
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.train import Adam, ShiftsAndFlips, TorchTrainer, _round_groups
from dynsnap.train._alone import AloneStepper
from dynsnap.train.models import by_name
from dynsnap.train.side_by_side import _group, _network


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a model is trained on.

    Attributes:
        sizes: Training inputs of each generation.
        validation: Inputs held out beside them.
    """

    classes: int
    sizes: tuple[int, ...]
    validation: int = 4_500


CIFAR_10 = Task(classes=10, sizes=(24_400, 30_500, 32_500))
CIFAR_100 = Task(classes=100, sizes=(37_500, 46_875, 47_375))
NEWSGROUPS = Task(classes=20, sizes=(5_649, 7_064, 7_298), validation=3_580)
TASKS = {"resnet56": CIFAR_100, "fasttext": NEWSGROUPS}


class Clock:
    """Takes the times apart that a study adds up."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.built = self.steps = 0.0
        self.inputs = 0

    def stepper(self, *arguments, **settings):
        """What the trainer would build, with clocks on it."""
        settings["grouped"] &= self.way != "streams"
        start = time.perf_counter()
        if self.way == "alone":
            stepper = AloneStepper(arguments[0], loss=functional.cross_entropy)
        else:
            stepper = BUILD(*arguments, **settings)
        assert stepper is not None, "the steps could not be captured"
        torch.cuda.synchronize()
        self.built = time.perf_counter() - start
        advance = stepper.advance

        def timed(rounds, steps, /):
            begun = time.perf_counter()
            advance(rounds, steps)
            torch.cuda.synchronize()
            self.steps += time.perf_counter() - begun
            self.inputs += sum(round_.batch for round_ in rounds) * steps

        stepper.advance = timed
        return stepper


BUILD = _round_groups.side_by_side


def images(count: int, rng: np.random.Generator) -> np.ndarray:
    """Images of random bytes."""
    return rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)


def texts(count: int, rng: np.random.Generator) -> np.ndarray:
    """Texts of random words, as long as posts are: few words are frequent, few texts are long."""
    lengths = np.minimum(rng.lognormal(5.2, 0.9, count), 1_014).astype(int)
    words = np.char.add("w", (rng.zipf(1.3, lengths.sum()) % 150_000).astype(str))
    cut = np.split(words, np.cumsum(lengths)[:-1])
    return np.array([" ".join(text) for text in cut], dtype=object)


def made_stream(model: str, share: float) -> Stream:
    """Made-up inputs in the sizes of a study, or a share of them."""
    task = TASKS.get(model, CIFAR_10)
    sizes = [int(size * share) + task.validation for size in task.sizes]
    make = texts if model == "fasttext" else images
    pool = Pool(
        name="made up",
        inputs=make(sizes[-1], np.random.default_rng(0)),
        labels=np.arange(sizes[-1]) % task.classes,
        classes=tuple(map(str, range(task.classes))),
        ids=np.arange(sizes[-1]),
    )
    held_out = np.full(task.classes, task.validation // task.classes)
    return Stream(
        pool=pool,
        generations=tuple(np.arange(size) for size in sizes),
        validation=tuple(held_out for _ in sizes),
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


def trainer_of(arguments: argparse.Namespace, clock: Clock, **more) -> TorchTrainer:
    _round_groups.side_by_side = clock.stepper
    settings = {"augment": None if arguments.model == "fasttext" else ShiftsAndFlips(), **more}
    return TorchTrainer(
        made_stream(arguments.model, arguments.share),
        model=by_name(arguments.model),
        optimizer=Adam(eps=1e-7, kernel_penalty=1e-4),
        batch_size=arguments.batch,
        keep_weights=False,
        **settings,
    )


def check(arguments: argparse.Namespace, rounds: int) -> None:
    asked, found = specs(rounds, arguments.epochs), []
    for way in (arguments.way, "alone"):
        trainer = trainer_of(arguments, Clock(way), augment=None, precision="float32")
        done = {one.spec: one for one in trainer.train(list(asked))}
        found.append([done[spec] for spec in asked])
    apart = [
        [np.abs(a.curve - b.curve).max(), np.abs(a.scores["test"] - b.scores["test"]).max()]
        for a, b in zip(*found, strict=True)
    ]
    curve, scores = np.max(apart, axis=0)
    print(f"{rounds} rounds: curves at most {curve:.5f} apart, scores at most {scores:.5f}")


def measure(arguments: argparse.Namespace, rounds: int) -> None:
    clock = Clock(arguments.way)
    trainer = trainer_of(arguments, clock)
    start = time.perf_counter()
    for _ in trainer.train(specs(rounds, arguments.epochs)):
        pass
    whole = time.perf_counter() - start - clock.built
    memory = torch.cuda.max_memory_allocated() / 2**30
    print(
        f"| {arguments.model} | {arguments.batch} | {arguments.way} | {rounds} | "
        f"{clock.inputs / clock.steps / 1e3:.0f} | {clock.inputs / whole / 1e3:.0f} | "
        f"{clock.built:.0f} s | {memory:.1f} GiB |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, nargs="+", default=[12])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the training inputs")
    parser.add_argument("--way", choices=["grouped", "streams", "alone"], default="grouped")
    parser.add_argument("--layers", action="store_true", help="no fused residual blocks")
    parser.add_argument("--no-combo-kernels", action="store_true", help="join no small kernels")
    parser.add_argument("--check", action="store_true", help="compare with rounds trained alone")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This measures a GPU, and there is none here.")
    if arguments.layers:
        _group.Block = type("NoBlock", (), {})  # a class that no module has: none is fused
    if arguments.no_combo_kernels:
        _network.COMBO_KERNELS = False
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    if arguments.check:
        for rounds in arguments.rounds:
            check(arguments, rounds)
        return
    print("Thousands of inputs per second:")
    print("| model | batch | way | rounds | bare | study | building | memory |")
    print("|---|---|---|---|---|---|---|---|")
    for rounds in arguments.rounds:
        measure(arguments, rounds)


if __name__ == "__main__":
    main()
