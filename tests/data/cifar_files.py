"""Small files in the layouts of CIFAR, and the places that they are read from."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np

CIFAR10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
COARSE = ["fish", "people"]
FINE = ["baby", "boy", "shark"]
IMAGES = 4


def made_batch(seed, classes=10):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (IMAGES, 3072), dtype=np.uint8)
    return pixels, rng.integers(0, classes, IMAGES).tolist()


def python2(content):
    """A dictionary as Python 2 pickled it: text as byte strings, arrays by numpy's old names."""

    def text(value):
        return b"T" + struct.pack("<i", len(value)) + value

    def item(value):
        if isinstance(value, bytes):
            return text(value)
        if isinstance(value, int):
            return b"J" + struct.pack("<i", value)
        if isinstance(value, list):
            return b"](" + b"".join(map(item, value)) + b"e"
        rows, columns = value.shape
        kind = b"cnumpy\ndtype\n(" + text(b"u1") + item(0) + item(1) + b"tR"
        kind += b"(" + item(3) + text(b"|") + b"NNN" + item(-1) + item(-1) + item(0) + b"tb"
        empty = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(" + item(0) + b"t"
        state = b"(" + item(1) + b"(" + item(rows) + item(columns) + b"t" + kind
        return empty + text(b"b") + b"tR" + state + b"\x89" + text(value.tobytes()) + b"tb"

    pairs = b"".join(item(key) + item(value) for key, value in content.items())
    return b"\x80\x02}(" + pairs + b"u."


WRITERS = {
    "python 2": python2,
    **{f"protocol {n}": lambda content, n=n: pickle.dumps(content, n) for n in range(6)},
}


def cifar10_python(write=pickle.dumps):
    files = {"batches.meta": write({b"label_names": [name.encode() for name in CIFAR10]})}
    for number, name in enumerate([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]):
        pixels, labels = made_batch(number)
        files[name] = write({b"batch_label": b"some", b"labels": labels, b"data": pixels})
    return files


def cifar10_binary():
    files = {"batches.meta.txt": "\n".join([*CIFAR10, "", ""]).encode()}
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    for number, name in enumerate(names):
        pixels, labels = made_batch(number)
        files[name] = np.column_stack([np.array(labels, np.uint8), pixels]).tobytes()
    return files


def cifar100(layout):
    files = {}
    for seed, name in enumerate(["train", "test"]):
        pixels, fine = made_batch(seed, classes=3)
        coarse = [0 if FINE[label] == "shark" else 1 for label in fine]
        if layout == "python":
            batch = {b"fine_labels": fine, b"coarse_labels": coarse, b"data": pixels}
            files[name] = pickle.dumps(batch)
        else:
            rows = np.column_stack([np.array([coarse, fine], np.uint8).T, pixels])
            files[f"{name}.bin"] = rows.tobytes()
    if layout == "python":
        meta = {b"fine_label_names": FINE, b"coarse_label_names": COARSE}
        files["meta"] = pickle.dumps(meta)
    else:
        files["fine_label_names.txt"] = "\n".join(FINE).encode()
        files["coarse_label_names.txt"] = "\n".join(COARSE).encode()
    return files


def in_folder(files, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def in_tar(files, path, prefix="cifar/"):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(prefix + name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    path.write_bytes(gzip.compress(plain.getvalue(), mtime=0))  # the same bytes at any time
    return path


def swapped(batch, one, other):
    return {**batch, one: batch[other], other: batch[one]}


def with_labels_swapped(files):
    for split in ("train", "test"):
        batch = pickle.loads(files[split])  # noqa: S301  the test's own bytes
        files[split] = pickle.dumps(swapped(batch, b"fine_labels", b"coarse_labels"))
    return files


def without(files, name):
    return {other: content for other, content in files.items() if other != name}
