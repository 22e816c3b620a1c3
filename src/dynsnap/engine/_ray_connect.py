"""To a Ray cluster, or to a Ray of our own on this machine."""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any

from dynsnap.errors import PlanError, TrainingError

_OBJECT_STORE = 512 * 2**20  # bytes, of a Ray that we start ourselves; it spills to disk beyond


class Cluster:
    """A Ray cluster from joining to leaving.

    Args:
        address: The cluster; None for the one that this process is connected to, or one of our own.
    """

    def __init__(self, address: str | None) -> None:
        _check_address(address)
        self._address = address
        self._ours = False

    def join(self, *, cores: float) -> Any:
        """Ray, connected; a cluster of our own has so many cores."""
        ray, ours = _connect(self._address, cores=cores)
        self._ours = self._ours or ours
        return ray

    def leave(self) -> None:
        """End what is for us to end."""
        if self._ours:
            _found_ray().shutdown()
            self._ours = False


def _connect(address: str | None, *, cores: float) -> tuple[Any, bool]:
    """Ray, and whether it is for us to end: we were not connected to one before.

    Args:
        address: The cluster to join; None starts one here, where there is none.
        cores: How many that one has.
    """
    ray = _found_ray()
    if ray.is_initialized():
        return ray, False
    settings: dict[str, Any] = {"address": address}
    if address is None:
        settings = {
            "address": "local",
            "num_cpus": max(1, round(cores)),
            "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE,
        }
    with _handlers_kept():
        try:
            _knock(address)
            ray.init(**settings, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
            place = address or "this machine"
            raise TrainingError(f"There is no Ray to use at {place}: {reason}") from error
    return ray, True


def _check_address(address: str | None) -> None:
    """Raise if it is one that cannot be used."""
    if address is not None and address.startswith("ray://"):
        raise PlanError(
            "Ray's client (ray://) cannot stream results. Start the study on a machine of the "
            "cluster, with the address HOST:PORT or auto."
        )


def _found_ray() -> Any:
    """The library."""
    # Ray's own agents read this when they start, so it must be set before.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.cloudpickle
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise PlanError(
            "This engine needs Ray, which is not installed. "
            "Install it with: pip install 'dynsnap[ray]'"
        ) from error
    return ray


def _knock(address: str | None) -> None:
    """Raise OSError where nobody listens: Ray itself would go on trying for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray answers signals in its own way; whoever started the study has one of theirs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
