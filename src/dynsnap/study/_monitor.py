"""Who is told how a study goes."""

from collections.abc import Sequence
from typing import Protocol

from dynsnap.ensemble import Monitor, Round, RoundSpec


class StudyMonitor(Monitor, Protocol):
    """Is told how a study goes, beside how each training goes."""

    def wave_begins(self, specs: Sequence[RoundSpec], /, *, found: int) -> None:
        """So many rounds were found in the store since the last wave, and these will be trained."""
        ...

    def round_done(self, done: Round, /) -> None: ...

    def measured(self, method: str, combination: str, /) -> None:
        """The rows of the table for this method and combination are there."""
        ...
