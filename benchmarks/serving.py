"""Latency and throughput of the server in docs/serving.md, and whether its answers are right.

Eight threads send 5,000 requests with one image each to a server on this machine. Every answer is
compared with the ensemble's own. With --write, the table and all sentences with numbers of it go
into docs/benchmarks.md and docs/serving.md, between their marks; `sentences` makes them of the
table alone, and a test compares.

    python benchmarks/serving.py --write
"""

import argparse
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
THREADS = 8
KINDS = {
    "single": "one network",
    "module": "one network, plain module",
    "ensemble": "ensemble of 20",
    "stacked": "the same, stacked",
    "onnx": "the same, ONNX",
}
SIZES = (1, 256)
TARGET = 3  # times one network's latency, at most
HEAD = (
    "| served | one input, ms | 256 inputs, ms | p50, ms | p99, ms | requests/s | wrong |\n"
    "|---|---|---|---|---|---|---|"
)
MARKED = re.compile(r"(<!-- serving: .*? -->\n)(.*?)(\n<!-- end of serving -->)", re.S)
GROUPED = re.compile(r"takes ([\d.]+) times as long as twenty plain ones")


def images():
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.images.astype(np.uint8)[..., None], data.target


def train(folder: Path) -> None:
    """An ensemble of 20 small convolutional networks, and one network."""
    import dynsnap
    from dynsnap.train.models import cnn

    rows, labels = images()
    common = {"method": "dynsnap-cyc", "random_state": 0, "device": "cpu", "beta": 1.0}
    for name, members, snapshots, epochs in (("ensemble", 20, 5, 10), ("single", 1, 1, 2)):
        made = dynsnap.DynSnapClassifier(
            cnn, members=members, snapshots=snapshots, epochs=epochs, **common
        ).fit(rows[:1000], labels[:1000])
        assert len(made.members_) == members
        made.save(folder / f"{name}.ensemble")
        if name == "ensemble":
            made.export_onnx(folder / "model.onnx", rows)


def predictor(kind: str, folder: Path):
    """The ensemble of a kind, and the function that the server calls."""
    import torch

    import dynsnap
    from dynsnap.train.models import cnn

    torch.set_num_threads(1)  # requests run side by side, not parts of one
    file = folder / f"{'single' if kind in ('single', 'module') else 'ensemble'}.ensemble"
    ensemble = dynsnap.DynSnapClassifier.load(file, model=cnn, device="cpu")
    if kind == "module":
        (module,) = ensemble.members_as_modules()

        def plain(rows):
            with torch.inference_mode():
                return module(torch.from_numpy(rows)).numpy()

        return ensemble, plain
    if kind == "stacked":
        stack = ensemble.stacked_module()

        def stacked(rows):
            with torch.inference_mode():
                members = stack(torch.from_numpy(rows)).numpy()
            return dynsnap.ensemble.combine(members, how="average")

        return ensemble, stacked
    if kind == "onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            folder / "model.onnx", options, providers=["CPUExecutionProvider"]
        )
        return ensemble, lambda rows: session.run(["scores"], {"images": rows})[0]
    return ensemble, ensemble.predict_proba


def serve(kind: str, folder: Path) -> None:
    """Run the server of the docs until it is ended; its port is the first line."""
    import uvicorn

    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    found = re.search(r"```python title=\"server.py\"\n(.*?)```", page, re.S)
    names = {"__name__": "server"}
    exec(compile(found[1], "docs/serving.md", "exec"), names)
    ensemble, scores = predictor(kind, folder)
    app = names["create_app"](scores, ensemble.classes_, np.uint8)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # who connects now waits until the server is up
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


def load(port: int, bodies: list[bytes], expected, requests: int):
    """Send the requests from all threads; the seconds of each, and how many answers are wrong."""
    seconds, wrong, left, lock = [], 0, iter(range(requests)), threading.Lock()

    def work():
        nonlocal wrong
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                number = next(left, None)
            if number is None:
                return
            at = number % len(bodies)
            start = time.perf_counter()
            connection.request("POST", "/predict", bodies[at], {"content-type": "application/json"})
            answer = connection.getresponse().read()
            took = time.perf_counter() - start
            found = np.array(json.loads(answer)["scores"])[0]
            with lock:
                seconds.append(took)
                wrong += bool(np.abs(found - expected[at]).max() > 1e-5)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seconds, wrong


def milliseconds(call, repeats: int) -> float:
    """The least time of many calls, which other programs disturb the least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def alone(kind: str, folder: Path, rows) -> dict[int, float]:
    """Milliseconds of one call without a server, for each size of a batch."""
    _, scores = predictor(kind, folder)
    one, many = (rows[:size] for size in SIZES)
    return {
        SIZES[0]: milliseconds(lambda: scores(one), 200),
        SIZES[1]: milliseconds(lambda: scores(many), 10),
    }


def grouped() -> float:
    """What a convolution of twenty groups takes, over what twenty plain ones take."""
    import torch

    torch.set_num_threads(1)
    many = torch.nn.Conv2d(320, 320, 3, padding=1, groups=20)
    one = torch.nn.Conv2d(16, 16, 3, padding=1)
    with torch.inference_mode():
        rows = torch.rand(256, 320, 8, 8)
        part = rows[:, :16].contiguous()
        return milliseconds(lambda: many(rows), 10) / (20 * milliseconds(lambda: one(part), 50))


# --- what the pages say -------------------------------------------------------------------------


def calls_of(table: str) -> dict[str, tuple[float, float]]:
    """Milliseconds for one input and for 256 of each kind, as a table has them."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    cells = {row[0]: row for row in rows if len(row) > 2}
    return {kind: (float(cells[words][1]), float(cells[words][2])) for kind, words in KINDS.items()}


def sentences(table: str, convolution: float) -> dict[str, str]:
    """The sentences with numbers of a table, for each page."""
    calls = calls_of(table)

    def times(kind: str, place: int, other: str = "module") -> float:
        return calls[kind][place] / calls[other][place]

    def words(ratio: float) -> str:
        return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"

    lines = []
    for place, size in enumerate(("one input", "256 inputs")):
        lines.append(
            f"* {size[0].upper()}{size[1:]}: the stack of twenty takes "
            f"{words(times('stacked', place))} times as long as one network as a plain module, "
            f"ONNX {words(times('onnx', place))} times. `predict_proba` of the ensemble takes "
            f"{words(times('ensemble', place, 'single'))} times as long as that of one network."
        )
    names = {"stacked": "the stack", "onnx": "ONNX"}
    reached = {
        met: [
            f"{name} for {size}"
            for place, size in enumerate(("one input", "256 inputs"))
            for kind, name in names.items()
            if (times(kind, place) <= TARGET) == met
        ]
        for met in (True, False)
    }
    said = [
        f"{verb} by {', '.join(reached[met])}"
        for met, verb in ((True, "met"), (False, "missed"))
        if reached[met]
    ]
    lines.append(
        f"* Twenty networks in at most {TARGET} times the latency of one: {'; '.join(said)}."
    )
    lines.append(
        f"* On this CPU, a convolution of twenty groups takes {convolution:.1f} times as long as "
        "twenty plain ones (256 inputs)."
    )
    several = {"ensemble": "`predict_proba`", "stacked": "the stack", "onnx": "ONNX"}
    best = [min(several, key=lambda kind: calls[kind][place]) for place in range(2)]
    summary = (
        f"As [measured](benchmarks.md#serving): for one input, twenty networks take "
        f"{', '.join(f'{calls[kind][0]:g} ms by {name}' for kind, name in several.items())}; one "
        f"network takes {calls['module'][0]:g} ms as a plain module and {calls['single'][0]:g} ms "
        f"by `predict_proba`. The fastest of the three is {several[best[0]]} for one input, and "
        f"{several[best[1]]} for 256."
    )
    return {"benchmarks.md": "\n".join(lines), "serving.md": summary}


def write(table: str, convolution: float) -> None:
    """Put a table and its sentences into the pages."""
    found = sentences(table, convolution)
    found["benchmarks.md"] = f"{table}\n\n{found['benchmarks.md']}"
    for name, text in found.items():
        path = ROOT / "docs" / name
        start, mark, _, end, rest = MARKED.split(path.read_text("utf-8"), maxsplit=1)
        path.write_text(start + mark + text + end + rest, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument(
        "--write", action="store_true", help="write docs/benchmarks.md and docs/serving.md"
    )
    parser.add_argument("--serve", nargs=2, metavar=("KIND", "FOLDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve[0], Path(chosen.serve[1]))
        return
    rows, _ = images()
    rows = rows[1000:1200]
    bodies = [json.dumps({"inputs": [one.tolist()]}).encode() for one in rows]
    lines = []
    busy = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder)
        for kind, words in KINDS.items():
            ensemble, _ = predictor(kind, folder)
            expected = ensemble.predict_proba(rows)
            calls = alone(kind, folder, rows.repeat(2, axis=0))
            server = subprocess.Popen(
                [sys.executable, __file__, "--serve", kind, name], stdout=subprocess.PIPE, text=True
            )
            try:
                port = int(server.stdout.readline())
                load(port, bodies, expected, 100)  # the first calls load and compile
                start = time.perf_counter()
                seconds, wrong = load(port, bodies, expected, chosen.requests)
                total = time.perf_counter() - start
            finally:
                server.terminate()
                server.wait()
            p50, p99 = np.percentile(np.array(seconds) * 1e3, [50, 99])
            busy.append(os.getloadavg()[0])
            lines.append(
                f"| {words} | {calls[1]:.2f} | {calls[256]:.1f} | {p50:.1f} | {p99:.1f} | "
                f"{len(seconds) / total:.0f} | {wrong} of {len(seconds):,} |"
            )
            print(lines[-1], flush=True)
    note = (
        f"{os.cpu_count()} cores; clients and server share them. Load average "
        f"{min(busy):.1f} to {max(busy):.1f} during the run"
        + (": other programs were busy, so times are upper limits." if max(busy) > 4 else ".")
    )
    table, convolution = "\n".join([HEAD, *lines, "", note]), grouped()
    if chosen.write:
        write(table, convolution)
    else:
        print(table, *sentences(table, convolution).values(), sep="\n\n")


if __name__ == "__main__":
    main()
