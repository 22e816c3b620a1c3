"""An engine, whatever its workers are: they get a trainer once, and waves go through them."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Protocol

from dynsnap.engine._parcel import Sent
from dynsnap.engine._spread import Crew, More, Rules, Wave
from dynsnap.engine._workers import Closing
from dynsnap.ensemble import Round, RoundSpec, Trainer


class HiredCrew(Crew, Protocol):
    """Workers that have a trainer, from wave to wave."""

    def begin_wave(self) -> None:
        """A wave begins; that the one before may have been asked to stop is forgotten."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class CrewEngine(Closing):
    """Spreads rounds over the workers of a crew, which stays for the next wave of its trainer."""

    takes_more = True

    def __init__(self, rules: Rules | None) -> None:
        self._rules = rules or Rules()
        self._trainer: Trainer | None = None
        self._hired: tuple[Sent, HiredCrew] | None = None

    def __call__(
        self, trainer: Trainer, specs: Sequence[RoundSpec], /, *, more: More | None = None
    ) -> Iterator[Round]:
        """The rounds as they finish.

        Args:
            trainer: Trains them.
            specs: The rounds.
            more: Asked for further rounds whenever one has been taken, so that a study need not
                wait for the slowest round before it asks for the next.
        """
        if not specs:
            return
        if self._trainer is not trainer or self._hired is None:
            self._dismiss()
            self._hired = self._hire(trainer)
            self._trainer = trainer
        sent, crew = self._hired
        crew.begin_wave()
        yield from Wave(
            crew=crew,
            rules=self._rules_for(trainer),
            monitor=sent.monitor,
            checkpoints=sent.checkpoints,
        ).run(specs, more)

    def close(self) -> None:
        """End the workers."""
        self._dismiss()

    @abstractmethod
    def _hire(self, trainer: Trainer) -> tuple[Sent, HiredCrew]:
        """What is sent of a trainer, and the workers that have it."""

    def _rules_for(self, trainer: Trainer) -> Rules:
        return self._rules

    def _dismiss(self) -> None:
        if self._hired is not None:
            self._hired[1].close()
        self._trainer = self._hired = None
