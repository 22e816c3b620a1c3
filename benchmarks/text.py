"""fastText on 20 Newsgroups beside floret, on one core, and how fast texts become tokens.

    pip install floret
    python benchmarks/text.py --data 20news-bydate.tar.gz

floret is the C++ of fastText with a Python interface. Both train on the same words of the same
posts in the same order to start with, with vectors of the same length, for as many epochs, on one
thread, in one process. CPU time counts all that a user waits for: reading the words, training, and
for dynsnap validation after every epoch. Tokens are counted as they stand in the posts.
"""

import argparse
import collections
import functools
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from dynsnap.data import Pool, from_generations, load
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.train import TorchTrainer, Words, tokenise
from dynsnap.train.models import fasttext

WIDTH = 50
LENGTH = 1014
WORDS = 9_999
BATCHES = {16: 0.005, 64: 0.01}  # with their learning rates
FLORET_RATE = 1.0  # the best of 0.1, 0.5, 1 and 2

Run = tuple[float, float]  # CPU seconds, and accuracy on the test posts


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="20 Newsgroups, in any form")
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--megabytes", type=int, default=100, help="of text to tokenise")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    learn, test = shortened(chosen.data)
    tokens = sum(text.count(" ") + 1 for text in learn.inputs)
    print(f"{len(learn):,} posts, {tokens:,} tokens of {WORDS:,} words, {chosen.epochs} epochs, ")
    print(f"vectors of {WIDTH}, one thread, median of {chosen.repeats}\n")
    print("| | CPU time | tokens per second | accuracy |\n|---|---|---|---|")
    runs = {"floret": [floret(learn, test, chosen.epochs) for _ in range(chosen.repeats)]}
    for batch, rate in BATCHES.items():
        # Compiled before the clock runs; the machine code is kept on disk.
        dynsnap(learn, test, 1, batch, rate)
        runs[f"dynsnap, batch {batch}"] = [
            dynsnap(learn, test, chosen.epochs, batch, rate) for _ in range(chosen.repeats)
        ]
    for name, found in runs.items():
        seconds = statistics.median(took for took, _ in found)
        accuracy = statistics.mean(right for _, right in found)
        speed = tokens * chosen.epochs / seconds
        print(f"| {name} | {seconds:.2f} s | {speed / 1e6:.1f} million | {accuracy:.3f} |")
    tokenising(load("20-newsgroups", chosen.data).train, chosen.megabytes)


def shortened(path: Path) -> tuple[Pool, Pool]:
    """The posts with nothing but the words that count, shuffled: floret never shuffles."""
    found = load("20-newsgroups", path)
    assert found.test is not None
    pools = {}
    words = {
        split: [tokenise(text)[:LENGTH] for text in pool.inputs]
        for split, pool in (("train", found.train), ("test", found.test))
    }
    counts = collections.Counter(word for line in words["train"] for word in line)
    known = {word for word, _ in counts.most_common(WORDS)}
    for split, pool in (("train", found.train), ("test", found.test)):
        texts = np.empty(len(pool), object)
        texts[:] = [" ".join(word for word in line if word in known) for line in words[split]]
        order = np.random.default_rng(0).permutation(len(pool))
        pools[split] = Pool(
            name=split,
            inputs=texts[order],
            labels=pool.labels[order],
            classes=pool.classes,
            ids=pool.ids[order],
        )
    return pools["train"], pools["test"]


def floret(learn: Pool, test: Pool, epochs: int) -> Run:
    """One training by floret, from a file, as it likes it."""
    import floret as peer

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        rows = zip(learn.labels, learn.inputs, strict=True)
        file.write_text("".join(f"__label__{label} {text}\n" for label, text in rows))
        start = time.process_time()
        model = peer.train_supervised(
            input=str(file),
            dim=WIDTH,
            epoch=epochs,
            lr=FLORET_RATE,
            thread=1,
            minCount=1,
            minn=0,
            maxn=0,
            bucket=1,
            loss="softmax",
            verbose=0,
        )
        took = time.process_time() - start
    said, _ = model.predict(list(test.inputs))
    right = [line[:1] == [f"__label__{y}"] for line, y in zip(said, test.labels, strict=True)]
    return took, float(np.mean(right))


def dynsnap(learn: Pool, test: Pool, epochs: int, batch: int, rate: float) -> Run:
    """One training by dynsnap with a constant learning rate, scoring of the test posts included."""
    stream = from_generations(learn, [np.arange(len(learn))], test=test, validation=0.01)
    recipe = Recipe(schedule=Schedule("step"), epochs=epochs, snapshots=1)
    start = time.process_time()
    trainer = TorchTrainer(
        stream,
        model=functools.partial(fasttext, width=WIDTH),
        batch_size=batch,
        learning_rate=rate,
        device="cpu",
        keep_weights=False,
    )
    (done,) = trainer.train([RoundSpec(recipe=recipe, generation=1)])
    took = time.process_time() - start
    return took, float(np.mean(done.scores["test"][0].argmax(axis=1) == test.labels))


def tokenising(pool: Pool, megabytes: int) -> None:
    """How long it takes to cut text into words and number them, for all rounds of a study."""
    times = -(-megabytes * 1_000_000 // sum(map(len, pool.inputs)))
    texts = np.concatenate([pool.inputs] * times)
    size = sum(map(len, texts)) / 1e6
    Words().encode(texts[:100])
    start = time.process_time()
    encoded = Words().encode(texts)
    took = time.process_time() - start
    print(f"\nTokenising {size:.0f} MB of text: {took:.2f} s, {size / took:.0f} MB/s, ", end="")
    print(f"{len(encoded.tokens) / took / 1e6:.1f} million tokens per second, once for all rounds.")


if __name__ == "__main__":
    main()
