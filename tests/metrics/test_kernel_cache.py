"""Machine code on disk that another version of this package has left there."""

import importlib
import sys

import numpy as np

MODULE = """
from typing import NamedTuple
import numpy as np
from dynsnap._compiled import compiled

class {name}(NamedTuple):
    values: np.ndarray

@compiled
def first(held: {name}) -> float:
    return held.values[0]

def call(value):
    return first({name}(np.array([value])))
"""


def test_code_whose_classes_have_another_name_by_now_is_compiled_anew(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "kernel_of_versions.py"
    for name, value in [("Before", 2.0), ("After", 3.0), ("After", 4.0)]:
        file.write_text(MODULE.format(name=name))
        importlib.invalidate_caches()
        monkeypatch.delitem(sys.modules, file.stem, raising=False)
        made = importlib.import_module(file.stem)
        assert made.call(value) == value
    assert list(tmp_path.rglob("*.nbi"))
    np.testing.assert_array_equal(made.first.stats.cache_hits[made.first.signatures[0]], 1)
