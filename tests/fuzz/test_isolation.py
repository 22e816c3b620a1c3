"""What the fuzzers rely on: a case that ends its process is told from one that does not."""

import os
import signal

from tests.fuzz import isolation

HERE = "tests.fuzz.test_isolation:end_as_told"


def end_as_told(case):
    if case == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif case == "loop":
        while True:
            pass
    elif case == "leave":
        os._exit(0)
    elif case == "memory":
        return str(len(bytearray(2 * isolation.BYTES)))
    elif case == "raise":
        raise KeyError("unexpected")
    print("libraries may print")
    return case, "and say why"


def test_crashes_loops_and_errors_are_outcomes_and_the_rest_goes_on():
    cases = ["fine", "crash", "raise", "leave", "memory", "loop", "fine"]
    found = list(isolation.run(HERE, cases, seconds=1))
    assert [outcome.case for outcome in found] == cases
    results = [outcome.result for outcome in found]
    assert results == ["fine", "crashed", "escaped", "crashed", "escaped", "blocked", "fine"]
    assert [outcome.failed for outcome in found] == [name != "fine" for name in cases]
    assert found[0].detail == "and say why"
    assert found[1].detail == "SIGSEGV"
    assert "unexpected" in found[2].detail
    assert "MemoryError" in found[4].detail
