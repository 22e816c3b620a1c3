"""Latency and throughput of the server in docs/serving.md, and whether its answers are right.

Eight threads send 5,000 requests with one image each to a server on this machine. Every answer is
compared with the ensemble's own. Writes the section "Serving" of docs/benchmarks.md with --write.

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
    "ensemble": "ensemble of 20",
    "stacked": "the same, stacked",
    "onnx": "the same, ONNX",
}


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
    file = folder / ("single.ensemble" if kind == "single" else "ensemble.ensemble")
    ensemble = dynsnap.DynSnapClassifier.load(file, model=cnn, device="cpu")
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


def alone(kind: str, folder: Path, rows) -> dict[int, float]:
    """Milliseconds of one call without a server, for batches of 1 and 256: the least of many."""
    _, scores = predictor(kind, folder)
    found = {}
    for size, repeats in ((1, 200), (256, 10)):
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            scores(rows[:size])
            times.append(time.perf_counter() - start)
        found[size] = min(times) * 1e3
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
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
                f"| {words} | {calls[1]:.2f} | {calls[256]:.0f} | {p50:.1f} | {p99:.1f} | "
                f"{len(seconds) / total:.0f} | {wrong} of {len(seconds):,} |"
            )
            print(lines[-1], flush=True)
    note = (
        f"{os.cpu_count()} cores; clients and server share them. Load average "
        f"{min(busy):.1f} to {max(busy):.1f} during the run"
        + (": other programs were busy, so times are upper limits." if max(busy) > 4 else ".")
    )
    head = (
        "| served | one input, ms | 256 inputs, ms | p50, ms | p99, ms | requests/s | wrong |\n"
        "|---|---|---|---|---|---|---|"
    )
    table = "\n".join([head, *lines, "", note])
    if chosen.write:
        path = ROOT / "docs" / "benchmarks.md"
        page = path.read_text(encoding="utf-8")
        parts = re.split(
            r"(<!-- serving: .*? -->\n).*?(\n<!-- end of serving -->)", page, flags=re.S
        )
        path.write_text("".join([*parts[:2], table, *parts[2:]]), encoding="utf-8")
    else:
        print(table)


if __name__ == "__main__":
    main()
