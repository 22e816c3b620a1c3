"""Training and prediction beside what people would use or write instead, in one process.

    python benchmarks/training.py

CPU time on one thread. A peer that is not installed is skipped by name:
`pip install --no-deps torchensemble==0.2.0`.
"""

import contextlib
import functools
import io
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from dynsnap.data import Pool, digits, from_generations
from dynsnap.ensemble import Recipe, Round, RoundSpec, Schedule, combine
from dynsnap.train import Adam, ShiftsAndFlips, TorchTrainer
from dynsnap.train.models import cnn, mlp, resnet

MEMBERS, EPOCHS, BATCH, REPEATS = 10, 20, 32, 3
MODELS = {"MLP 64-128-10": functools.partial(mlp, hidden=(128,)), "CNN": cnn}


def main() -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread\n")
    against_torchensemble()
    against_a_loop()
    precisions()
    prediction()


def cpu_time(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


# Training a whole ensemble, against TorchEnsemble


def against_torchensemble() -> None:
    print(f"## Digits: {MEMBERS} members, {EPOCHS} epochs, batch {BATCH}, Adam 1e-3\n")
    try:
        import torchensemble  # noqa: F401
    except ImportError:
        print("TorchEnsemble is not installed: skipped.\n")
        return
    pool = digits().train
    rows = np.random.default_rng(0).permutation(len(pool))
    test, learn = pool.take(rows[:360], name="test"), pool.take(rows[360:], name="learn")
    stream = from_generations(learn, [np.arange(len(learn))], test=test, validation=0.2)
    print("| model | ensemble | dynsnap | TorchEnsemble | ratio | accuracy, ours / theirs |")
    print("|---|---|---|---|---|---|")
    for name, model in MODELS.items():
        trainer = TorchTrainer(stream, model=model, batch_size=BATCH, device="cpu")
        for kind in ("voting", "snapshot"):
            ours, theirs = [], []
            for repeat in range(REPEATS):
                ours.append(cpu_time(lambda: _ours(trainer, kind, repeat, test)))  # noqa: B023
                theirs.append(cpu_time(lambda: _theirs(stream, model, kind, repeat)))  # noqa: B023
            trained = MEMBERS if kind == "voting" else 1
            mine, other = (
                1000 * statistics.median(seconds for seconds, _ in runs) / EPOCHS / trained
                for runs in (ours, theirs)
            )
            right = [statistics.mean(found for _, found in runs) for runs in (ours, theirs)]
            print(
                f"| {name} | {kind} | {mine:.1f} ms | {other:.1f} ms | {mine / other:.2f} "
                f"| {right[0]:.3f} / {right[1]:.3f} |"
            )
    print("\nCPU time of one epoch of one training. dynsnap's validates every epoch besides.\n")


def _ours(trainer: TorchTrainer, kind: str, seed: int, test: Pool) -> float:
    if kind == "voting":
        recipe = Recipe(schedule=Schedule("constant"), epochs=EPOCHS, snapshots=1)
        count = MEMBERS
    else:
        recipe = Recipe(
            schedule=Schedule("cyclic"), epochs=EPOCHS, snapshots=MEMBERS, selection="window"
        )
        count = 1
    specs = [RoundSpec(recipe=recipe, generation=1, index=i, seed=seed) for i in range(count)]
    scores = np.concatenate([done.scores["test"] for done in trainer.train(specs)])
    labels = combine(scores, how="average").argmax(axis=1)
    return float((labels == test.labels).mean())


def _theirs(stream: Any, model: Callable[..., nn.Module], kind: str, seed: int) -> float:
    from torchensemble import SnapshotEnsembleClassifier, VotingClassifier

    torch.manual_seed(seed)
    # As many rows as ours learn from: all but the validation rows.
    count = len(stream.pool) - int(stream.validation[0].sum())
    images = torch.from_numpy(stream.pool.inputs[:count, :, :, 0]).float().unsqueeze(1) / 255
    mean = images.mean(dim=0)
    data = TensorDataset(images - mean, torch.from_numpy(stream.pool.labels[:count]))

    class Net(nn.Sequential):
        """The same layers as a class, so that every member starts afresh."""

        def __init__(self) -> None:
            super().__init__(*model(classes=10, inputs=tuple(images.shape[1:])))

    kinds = {"voting": VotingClassifier, "snapshot": SnapshotEnsembleClassifier}
    ensemble = kinds[kind](estimator=Net, n_estimators=MEMBERS, cuda=False)
    ensemble.set_optimizer("Adam", lr=1e-3)
    with contextlib.redirect_stdout(io.StringIO()):
        ensemble.fit(
            DataLoader(data, batch_size=BATCH, shuffle=True),
            epochs=EPOCHS,
            log_interval=10**9,
            save_model=False,
        )
    test = stream.evaluation["test"]
    held_out = torch.from_numpy(test.inputs[:, :, :, 0]).float().unsqueeze(1) / 255
    ensemble.eval()
    with torch.no_grad():
        labels = ensemble(held_out - mean).argmax(dim=1).numpy()
    return float((labels == test.labels).mean())


# One round, against a loop written by hand


def against_a_loop() -> None:
    print("## ResNet-20: one round against a loop written by hand\n")
    made = _pictures(200)
    stream = from_generations(made, [np.arange(200)], test=made.take(np.arange(64)), validation=0.2)
    trainer = TorchTrainer(
        stream,
        model=functools.partial(resnet, 20),
        optimizer=Adam(eps=1e-7, kernel_penalty=1e-4),
        augment=ShiftsAndFlips(),
        batch_size=BATCH,
        device="cpu",
    )
    recipe = Recipe(schedule=Schedule("constant"), epochs=2, snapshots=1)
    spec = RoundSpec(recipe=recipe, generation=1)
    ratios, seconds = [], []
    for repeat in range(8):
        # Turn about, so that neither always comes first.
        jobs = [lambda: next(iter(trainer.train([spec]))), lambda: _by_hand(made)]
        times = {}
        for which in (0, 1) if repeat % 2 else (1, 0):
            times[which], _ = cpu_time(jobs[which])
        if repeat:  # the first warms up
            ratios.append(times[0] / times[1])
            seconds.append(times[0])
    print(
        f"{statistics.median(ratios):.3f} of its CPU time (median of {len(ratios)}; from "
        f"{min(ratios):.3f} to {max(ratios):.3f}), {statistics.median(seconds):.2f} s a round of "
        f"2 epochs of 5 steps.\n"
    )


def _pictures(count: int) -> Pool:
    return Pool(
        name="made",
        inputs=np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3)).astype(np.uint8),
        labels=np.arange(count) % 10,
        classes=tuple("abcdefghij"),
        ids=np.arange(count),
    )


def _by_hand(pool: Pool) -> Tensor:
    images = torch.from_numpy(pool.inputs.transpose(0, 3, 1, 2).copy())
    labels = torch.from_numpy(pool.labels)
    order = torch.randperm(len(pool))
    train, held_out = order[:160], order[160:]
    mean = images[train].float().mean(dim=0) / 255
    module = resnet(20, 10)
    kernels = [part.weight for part in module.modules() if isinstance(part, nn.Conv2d)]
    rest = [v for v in module.parameters() if not any(v is kernel for kernel in kernels)]
    optimizer = torch.optim.Adam(
        [{"params": kernels, "weight_decay": 2e-4}, {"params": rest}], lr=1e-3, eps=1e-7, fused=True
    )
    generator, augment = torch.Generator(), ShiftsAndFlips()
    best, kept = -1.0, {}
    for _ in range(2):
        module.train()
        for rows in train[torch.randperm(160)].split(BATCH):
            batch = augment(images[rows].float() / 255 - mean, generator)
            loss = functional.cross_entropy(module(batch), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        module.eval()
        with torch.inference_mode():
            logits = module(images[held_out].float() / 255 - mean)
            accuracy = float((logits.argmax(dim=1) == labels[held_out]).float().mean())
        if accuracy > best:
            best = accuracy
            kept = {name: value.clone() for name, value in module.state_dict().items()}
    module.load_state_dict(kept)
    with torch.inference_mode():
        return torch.softmax(module(images[:64].float() / 255 - mean), dim=1)


# Mixed precision, which is fast where the CPU has instructions for it


def precisions() -> None:
    print("## ResNet-20, batch 128: bfloat16 against float32\n")
    made = _pictures(640)
    stream = from_generations(made, [np.arange(640)], test=made.take(np.arange(64)), validation=0.2)
    recipe = Recipe(schedule=Schedule("constant"), epochs=2, snapshots=1)
    spec = RoundSpec(recipe=recipe, generation=1)
    trainers = [
        TorchTrainer(
            stream,
            model=functools.partial(resnet, 20),
            batch_size=128,
            device="cpu",
            precision=precision,
        )
        for precision in ("float32", "bfloat16")
    ]
    times = [
        [cpu_time(lambda: next(iter(trainer.train([spec]))))[0] for trainer in trainers]  # noqa: B023
        for _ in range(4)
    ][1:]  # the first warms up
    ratio = statistics.median(mixed / single for single, mixed in times)
    images = 2 * 512 / statistics.median(mixed for _, mixed in times)
    print(f"{ratio:.2f} of its CPU time (median of 3), {images:.0f} images a second.\n")


# Prediction


def prediction() -> None:
    print("## Prediction with stored MLPs (64-128-10)\n")
    pool = digits().train
    stream = from_generations(pool, [np.arange(len(pool))], test=pool, validation=0.2)
    model = functools.partial(mlp, hidden=(128,))
    trainer = TorchTrainer(stream, model=model, batch_size=BATCH, device="cpu")
    recipe = Recipe(schedule=Schedule("constant"), epochs=2, snapshots=1)
    rounds = list(
        trainer.train([RoundSpec(recipe=recipe, generation=1, index=i) for i in range(20)])
    )
    print("| members | inputs | stacked | loop over members | loop / stacked | stored |")
    print("|---|---|---|---|---|---|")
    for members in (1, 5, 20):
        weights = [done.weights[0] for done in rounds[:members]]
        predictor = trainer.predictor(weights)
        loop = _loop(model, rounds[:members])
        for count in (1, 64, 1024):
            inputs = pool.inputs[:count]
            assert np.allclose(predictor(inputs), loop(inputs), atol=1e-5)
            ours, theirs = (_latency(job, inputs) for job in (predictor, loop))
            print(
                f"| {members} | {count} | {1e3 * ours:.2f} ms | {1e3 * theirs:.2f} ms "
                f"| {theirs / ours:.1f} | {sum(map(len, weights)) / 1000:.0f} kB |"
            )
    print()


def _loop(model: Callable[..., nn.Module], rounds: list[Round]) -> Callable[[Any], Any]:
    """What one writes without stacking: each member prepares the inputs and is called."""
    from safetensors.torch import load

    members = []
    for done in rounds:
        stored = load(done.weights[0])
        module = model(10, inputs=(1, 8, 8)).eval()
        module.load_state_dict(
            {k.removeprefix("model."): v for k, v in stored.items() if k.startswith("model.")}
        )
        members.append((module, stored["prepare.mean"]))

    def predict(inputs: Any) -> Any:
        images = torch.from_numpy(inputs.transpose(0, 3, 1, 2).copy())
        with torch.inference_mode():
            scores = [
                torch.softmax(module(images.float() / 255 - mean), dim=1)
                for module, mean in members
            ]
        return torch.stack(scores).numpy()

    return predict


def _latency(job: Callable[[Any], Any], inputs: Any) -> float:
    def seconds() -> Iterator[float]:
        for _ in range(31):
            start = time.perf_counter()
            job(inputs)
            yield time.perf_counter() - start

    job(inputs)
    return statistics.median(seconds())


if __name__ == "__main__":
    main()
