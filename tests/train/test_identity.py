"""Whatever of a caller's own code a round depends on, an edit of it shows."""

import sys
from types import ModuleType

import pytest
import torch

from dynsnap.train._identity import identity

HELPERS = """
def doubled(values):
    return values * 2.0
"""

MINE = """
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

import helpers
from helpers import doubled

SMOOTHING = 0.1
WEIGHTS = torch.tensor([1.0, 2.0])
LOCK = object()  # what cannot be told from another, and does no harm in code


class Parent(nn.Module):
    def scaled(self, values):
        return values * 3.0


class Net(Parent):
    steepness = 4.0

    def __init__(self, classes=2):
        super().__init__()
        self.layer = nn.Linear(2, classes)
        nn.init.constant_(self.layer.weight, 5.0)

    def forward(self, inputs):
        return self.scaled(self.layer(inputs)) * self.steepness


@dataclass(frozen=True)
class Shake:
    width: float = 1.0

    def __call__(self, batch, generator):
        return self._moved(batch, LOCK)

    def _moved(self, batch, lock):
        return batch + 6.0 * self.width


class Slow(torch.optim.SGD):
    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr / 7.0)


def loss(logits, labels):
    return functional.cross_entropy(
        doubled(logits), labels, weight=WEIGHTS, label_smoothing=SMOOTHING
    ) + helpers.doubled(0.0)


USED = (Net, Net(), Shake(), Slow, loss)
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Reads the identity of all that one's own files define, after an edit of them."""

    def read_after(old="", new=""):
        for name, text in (("helpers", HELPERS), ("mine", MINE)):
            module = ModuleType(name)
            module.__file__ = str(tmp_path / f"{name}.py")
            monkeypatch.setitem(sys.modules, name, module)
            edited = text.replace(old, new) if old else text
            (tmp_path / f"{name}.py").write_text(edited)
            exec(edited, module.__dict__)
        return identity(sys.modules["mine"].USED)

    return read_after


def test_the_same_code_is_the_same_however_often_it_is_read(read):
    assert read() == read()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("values * 2.0", "values * 2.5"),  # a function that is named, in another file
        ("values * 3.0", "values * 3.5"),  # a method of a base class
        ("steepness = 4.0", "steepness = 4.5"),  # a value of a class
        ("weight, 5.0", "weight, 5.5"),  # how a module begins
        ("batch + 6.0", "batch + 6.5"),  # a method that is called by another
        ("lr / 7.0", "lr / 7.5"),  # an optimiser of one's own
        ("SMOOTHING = 0.1", "SMOOTHING = 0.2"),  # a value that is named
        ("[1.0, 2.0]", "[1.0, 2.5]"),  # a tensor that is named
    ],
)
def test_an_edit_anywhere_in_a_callers_own_code_shows(read, old, new):
    assert read() != read(old, new)


def test_long_arrays_are_told_apart_in_the_middle():
    one, other = torch.zeros(5000), torch.zeros(5000)
    other[2500] = 1
    assert identity(one) == identity(torch.zeros(5000)) != identity(other)
    assert identity(one.numpy()) != identity(other.numpy())
    assert identity(one.bfloat16()) != identity(other.bfloat16())


def test_a_function_that_names_itself_is_read_once():
    def again(depth):
        return again(depth - 1) if depth else 0

    assert identity(again) == identity(again)
