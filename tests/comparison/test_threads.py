"""Comparisons on many threads at once come to what each comes to alone."""

import json
import threading

import pytest

from dynsnap import compare
from dynsnap.comparison import to_json
from dynsnap.metrics import _tally
from dynsnap.predictions import write
from tests.comparison.made import generations


@pytest.mark.parametrize("compiled", [False, True])
def test_threads_that_compare_the_same_predictions_find_the_same(compiled, monkeypatch, tmp_path):
    if compiled:
        monkeypatch.setattr(_tally, "_COMPILED_FROM", 0)
    pair = generations(rows=120, classes=3)
    files = [tmp_path / f"{name}.parquet" for name in ("old", "new")]
    for made, path in zip(pair, files, strict=True):
        write(made, path)
    alone = [json.dumps(to_json(compare(*given)), sort_keys=True) for given in (pair, files)]
    found, start = [], threading.Barrier(4)

    def work(given, expected):
        start.wait()
        found.extend(
            json.dumps(to_json(compare(*given)), sort_keys=True) == expected for _ in range(3)
        )

    threads = [
        threading.Thread(target=work, args=each)
        for each in zip((pair, files) * 2, alone * 2, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 12
