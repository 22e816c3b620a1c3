"""Signals that ask the program, its training and its workers to end."""

import os
import signal

import pytest

from dynsnap.cli import _group, _signals, main
from dynsnap.cli._progress import ProgressMonitor
from dynsnap.engine._engine import ignoring_interrupts


@pytest.fixture
def handlers():
    """Signals are handled afterwards as they were before."""
    before = {number: signal.getsignal(number) for number in _signals.ENDING}
    for number in _signals.ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_training_stops_at_the_next_checkpoint_and_at_once_if_asked_twice(sent, handlers):
    number = signal.Signals[sent]
    with ProgressMonitor(quiet=True) as watch:
        assert not watch.stopping()
        os.kill(os.getpid(), number)
        assert watch.stopping()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_signals_that_a_program_was_started_to_ignore_stay_ignored(handlers):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    with _signals.as_interrupts(), ProgressMonitor(quiet=True) as watch:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not watch.stopping()
        with pytest.raises(_signals.Signalled) as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGTERM)
    assert stop.value.number == signal.SIGTERM


def test_workers_leave_the_signals_of_a_terminal_to_their_driver():
    with ignoring_interrupts():
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) >= set(_signals.ENDING)


@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_a_class_is_made_ends_the_program_in_one_line(
    sent, handlers, monkeypatch, capsys
):
    number = signal.Signals[sent]

    class Named:
        def __set_name__(self, owner, name):
            os.kill(os.getpid(), number)

    # As while a library of a command is imported: until Python 3.12 that raises a RuntimeError.
    monkeypatch.setattr(_group, "start", lambda: type("Made", (), {"name": Named()}))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 128 + number
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_other_errors_are_not_taken_for_signals(handlers, monkeypatch):
    def start():
        raise RuntimeError("of a defect") from ValueError()

    monkeypatch.setattr(_group, "start", start)
    with pytest.raises(RuntimeError, match="defect"):
        main()
