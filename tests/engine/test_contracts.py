"""Every engine of the package is held against the contract, and none was forgotten."""

import inspect
from pathlib import Path

from dynsnap import engine
from dynsnap.ensemble import serial

CHECKED_IN = {
    "ProcessesEngine": ("test_processes.py",),
    "RayEngine": ("ray/test_one_node.py", "ray/test_two_nodes.py"),
}


def test_there_are_three_engines_and_each_is_checked():
    found = {name for name in engine.__all__ if "__call__" in vars(getattr(engine, name))} | {
        serial.__name__
    }
    assert found == {"serial", *CHECKED_IN}
    for name, files in CHECKED_IN.items():
        text = "".join((Path(__file__).parent / file).read_text() for file in files)
        assert f"{name}(" in text
        assert "check_engine(engine, " in text
        assert "class TestFaults(Faults)" in text


def test_engines_can_be_closed_and_used_in_a_with_block():
    for name in CHECKED_IN:
        methods = {name for name, _ in inspect.getmembers(getattr(engine, name))}
        assert {"close", "__enter__", "__exit__"} <= methods
