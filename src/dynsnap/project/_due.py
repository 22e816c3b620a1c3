"""Which period is the next to retrain on, by the clock and by the retrains so far."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

from dynsnap.errors import FileError
from dynsnap.project import _records as records
from dynsnap.project._records import Plan, Result
from dynsnap.project._rows import Cut, Rows, cut, period_end
from dynsnap.project._settings import Project


@dataclass(frozen=True, kw_only=True)
class Due:
    """What there is to retrain on.

    Args:
        project: What is retrained.
        until: The present, in UTC; the clock's if None.
        again: Also a period that has a finished retrain.
    """

    project: Project
    until: datetime | None
    again: bool

    def look(self, rows: Rows) -> Cut | None:
        """The rows of the newest period that is over, None where there is none.

        Raises:
            FileError: They are older than those that were retrained on.
        """
        until = self.until or datetime.now(UTC).replace(tzinfo=None)
        finished = [each.plan for each in records.results(self.project.folder) if each.measured]
        last = max(finished, key=self._end, default=None)
        after = None if last is None else self._end(last)
        made = cut(rows, self.project.data, until=until, after=after)
        if made is None:
            return None
        if last is not None and made.end < self._end(last) and not self.again:
            self._refuse_earlier(made, last)
        return made

    def _refuse_earlier(self, made: Cut, last: Plan) -> None:
        """Raise rather than deploy a model of the past because a clock was set back."""
        if self.finished(made) is None:
            raise FileError(
                f"The newest {self.project.data.cadence} with labelled rows is {made.period}, but "
                f"{last.period} was retrained on already: the clock, --until or the data went "
                "back. The deployed generation is unchanged. To retrain on the earlier rows all "
                "the same: --again."
            )

    def _end(self, plan: Plan) -> str:
        """The first day after the rows of a retrain."""
        if plan.end is None and self._was_other:
            return _days_after(plan.period, 1)  # at least: a retrain too many loses nothing
        return plan.end or period_end(plan.period, self.project.data.cadence)

    @cached_property
    def _was_other(self) -> bool:
        """Whether retrains that do not state their ends, all of one cadence, were of another."""
        cadence = self.project.data.cadence
        found = (each.plan for each in records.results(self.project.folder))
        begun = (plan.period for plan in found if plan.end is None)
        return any(period_end(_days_after(day, -1), cadence) != day for day in begun)

    def _other_cadence(self, plan: Plan) -> bool:
        """Whether a retrain was made before `cadence` changed."""
        return self._end(plan) != period_end(plan.period, self.project.data.cadence)

    def nothing(self) -> str:
        """What to say where no period is over."""
        return (
            f"No {self.project.data.cadence} with labelled rows has ended yet. Nothing to do; the "
            "deployed generation is unchanged."
        )

    def already(self, made: Cut, done: Result) -> str:
        """What to say where the newest period was retrained on."""
        if self._other_cadence(done.plan):
            return (
                f"`cadence` changed. The rows of the newest {self.project.data.cadence}, "
                f"{made.period}, were in the retrain {done.plan.name}: {done.reason} The first "
                f"{self.project.data.cadence} that ends after {self._end(done.plan)} is the next "
                "to retrain on. To retrain now: --again."
            )
        return (
            f"The newest {self.project.data.cadence} with rows, {done.plan.period}, was retrained "
            f"on already: {done.reason} Retrain again with --again."
        )

    def finished(self, made: Cut) -> Result | None:
        """The last finished retrain on these rows, unless there is something to do for them.

        After `cadence` changed they may be part of a longer period that was retrained on.
        """
        if self.again or records.unfinished_of(self.project.folder, made.period) is not None:
            return None
        found = [
            each
            for each in records.results(self.project.folder)
            if each.decision != "abandoned"
            and (
                self._end(each.plan) == made.end
                or (self._other_cadence(each.plan) and self._end(each.plan) > made.end)
            )
        ]
        own = [each for each in found if not self._other_cadence(each.plan)]
        return next(reversed(own or found), None)


def _days_after(day: str, days: int) -> str:
    return str(date.fromisoformat(day) + timedelta(days))
