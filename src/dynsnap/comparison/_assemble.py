"""From sums to results: values, intervals, tests, groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._count import Counted, task_in
from dynsnap.comparison._families import lost_between
from dynsnap.comparison._groups import corrected, counts_inputs, group_results, pair_statistic
from dynsnap.comparison._labelled import with_unlabelled
from dynsnap.comparison._notes import notes
from dynsnap.comparison._readings import (
    effective_inputs,
    estimates,
    joined,
    mcnemar,
    multiples,
    transitions,
    wholes_of,
)
from dynsnap.comparison._results import (
    Comparison,
    Estimate,
    Estimates,
    Flow,
    GenerationResult,
    PairResult,
)
from dynsnap.comparison.intervals import (
    AgreementStatistic,
    BayesianBootstrap,
    CohenStatistic,
    ConfusionStatistic,
    Ends,
    GenerationStatistic,
    Metrics,
    RankStatistic,
    Sampled,
    Statistic,
    changes,
)
from dynsnap.metrics._row_tally import RowTally
from dynsnap.metrics._tally import Tally, without_truth
from dynsnap.predictions.tasks import CLASSIFICATION, Task

_FLOWS = 300  # kinds of change that a result names


def assemble(
    counted: Counted, bootstrap: BayesianBootstrap, *, minority_share: float
) -> Comparison:
    """Everything that a comparison finds, from the sums."""
    found = _Assembly(counted, bootstrap, minority_share).comparison()
    if counted.unlabelled is None:
        return found
    tally, others = counted.tally, counted.unlabelled
    if isinstance(tally, RowTally) and isinstance(others, RowTally):
        together: Tally = tally.without_truth(others)
    else:
        together = without_truth(tally, others)
    every = replace(counted, tally=together, families={})
    whole = _Assembly(every, bootstrap, minority_share).comparison()
    both = with_unlabelled(found, whole, weight=float(tally.generations[0].means[:, 0].sum()))
    return replace(both, notes=notes(counted, _measured(both)))


def _measured(found: Comparison) -> dict[str, Estimates]:
    """Metrics by what they are about."""
    measured = {each.name: each.metrics for each in found.generations}
    measured |= {f"{pair.old} → {pair.new}": pair.metrics for pair in found.pairs}
    measured["all generations"] = found.agreement
    if (floor := found.pairs[0].noise_floor) is not None:
        twin = len(found.alignment.names) > len(found.generations)
        other = "twin" if twin else "own answers"
        measured[f"{found.generations[0].name} and its {other}"] = floor
    return measured


@dataclass(frozen=True)
class _Assembly:
    counted: Counted
    bootstrap: BayesianBootstrap
    minority_share: float

    def comparison(self) -> Comparison:
        counted, layout = self.counted, self.counted.tally.layout
        regular = range(len(counted.names))
        alone = [self._generation(g) for g in range(len(layout.scored))]
        together = [self._pair(place, alone) for place in range(len(layout.pairs))]
        cases = [self._cases(place) for place in range(len(layout.pairs))]
        floor = None
        if counted.floor is not None:  # the last of them
            floor = self._estimates(together.pop(), cases.pop())
        generations = tuple(
            GenerationResult(name=counted.names[g], metrics=self._estimates(alone[g]))
            for g in regular
        )
        pairs = tuple(
            self._pair_result(place, self._estimates(sampled, cases[place]), cases[place], floor)
            for place, sampled in enumerate(together)
        )
        agreement = self._estimates(self._agreement(len(pairs)))
        # The average of one pair is the pair itself, exact intervals included.
        averages = pairs[0].metrics if len(pairs) == 1 else self._average(together)
        counting = counted.tally.counting_of(layout.groupings[0])
        found = Comparison(
            inputs=counted.tally.rows,
            classes=counted.classes,
            generations=generations,
            pairs=pairs,
            averages={**self._average([alone[g] for g in regular]), **averages},
            agreement=agreement,
            alignment=counted.report,
            new_classes=counted.new_classes,
            dropped_classes=counted.dropped_classes,
            confidence=self.bootstrap.confidence,
            resamples=self.bootstrap.resamples,
            weighted=layout.weighted,
            has_truth=layout.truth,
            has_scores=all(layout.scored),
            task=CLASSIFICATION if self.task is None else self.task.name,
            slices=counted.slices,
            families=counted.families,
            unknown_labels=counted.unknown_labels,
            unstable=counted.gallery.unstable,
            ambiguity_so_far=counted.gallery.ambiguity,
            counting=None if counting is None else int(counting.sum()),
            effective=self._effective(),
        )
        return replace(found, notes=notes(counted, _measured(found)))

    @property
    def task(self) -> Task | None:
        return task_in(self.counted.tally)

    @property
    def _counts_inputs(self) -> bool:
        """Whether cases are numbers of inputs, which a test of counts can be about."""
        return counts_inputs(self.counted.tally.layout)

    def _generation(self, generation: int) -> Sampled:
        tally = self.counted.tally
        sums = tally.generations[generation]
        columns = tally.layout.generation_columns(generation)
        most = tally.layout.most_loss(generation)
        reach = tally.own_reach_of(generation) if isinstance(tally, RowTally) else {}
        statistic = GenerationStatistic(columns, most, reach)
        found = [self._sampled(statistic, sums.means, sums.gaps)]
        if tally.layout.classification and (confusion := tally.confusion(generation)):
            found.append(self._sampled(ConfusionStatistic(), *confusion))
        if (ranks := self.counted.ranks(generation)) is not None:
            flat = ranks.sums.reshape(len(ranks.sums), -1)
            found.append(self._sampled(RankStatistic(ranks, self.counted.heaviest), flat))
        return joined(found)

    def _pair(self, place: int, alone: Sequence[Sampled]) -> Sampled:
        tally, layout = self.counted.tally, self.counted.tally.layout
        old, new = (tally.generations[g].labels for g in layout.pairs[place])
        columns = layout.pair_columns(layout.pairs[place])
        statistic = pair_statistic(tally, place, layout.groupings[0], np.zeros(1, np.intp))
        if len(self.counted.names) > 2:  # averages over pairs are means of shares, which are none
            statistic = replace(statistic, exact=frozenset())
        sums = tally.pair_sums(place)[:, : len(layout.cases) + len(columns)]
        found = self._sampled(statistic, sums)
        if self.task is not None:
            return found
        # Label frequencies are kept in fewer blocks when there are very many classes.
        kappa = self._sampled(CohenStatistic(layout.truth), self._folded_cases(place), old, new)
        changed = changes(*(alone[g] for g in layout.pairs[place]))
        return joined([changed, found, kappa])  # the change of accuracy is one of the cases

    def _agreement(self, pairs: int) -> Sampled:
        if self.task is not None:  # chance agrees on labels only
            return Sampled({}, Ends({}, {}))
        tally = self.counted.tally
        regular = len(self.counted.names)
        labels = [sums.labels for sums in tally.generations[:regular]]
        ambiguous = np.stack([tally.ambiguous, tally.generations[0].means[:, 0]], axis=-1)
        statistic = AgreementStatistic(pairs, tally.layout.truth, tally.rows * regular)
        return self._sampled(
            statistic,
            tally.folded(ambiguous, tally.layout.label_blocks),
            *(self._folded_cases(place) for place in range(pairs)),
            *labels,
        )

    def _folded_cases(self, place: int) -> Floats:
        tally, layout = self.counted.tally, self.counted.tally.layout
        cases = tally.pair_sums(place)[:, : len(layout.cases)]
        return tally.folded(cases, layout.label_blocks)

    def _sampled(self, statistic: Statistic, *sums: Floats) -> Sampled:
        """A statistic of sums (blocks, columns) over all inputs."""
        tally = self.counted.tally
        return self.bootstrap.sampled(
            statistic,
            *(each[None] for each in sums),
            heaviest=np.array([self.counted.heaviest]),
            inputs=np.array([tally.rows]),
            order=tally.order,
        )

    def _pair_result(
        self, place: int, metrics: Estimates, cases: AnyArray, floor: Estimates | None
    ) -> PairResult:
        counted, tally = self.counted, self.counted.tally
        old, new = (counted.names[g] for g in tally.layout.pairs[place])
        return PairResult(
            old=old,
            new=new,
            metrics=metrics,
            transitions=transitions(cases),
            mcnemar=mcnemar(cases) if self._counts_inputs else None,
            flows=tuple(self._flows(place)),
            lost_between={
                name: tuple(lost_between(tally.flows[place], counted.classes, family))
                for name, family in counted.families.items()
            },
            groups=corrected(
                group_results(
                    counted,
                    self.bootstrap,
                    place,
                    minority_share=self.minority_share,
                )
            ),
            noise_floor=floor,
            multiples=self._multiples(),
            flipped=counted.gallery.flipped(*tally.layout.pairs[place]),
        )

    def _multiples(self) -> Estimates | None:
        """Of two generations with a noise floor, metrics in multiples of the noise floor."""
        counted, tally = self.counted, self.counted.tally
        if counted.floor is None or len(counted.names) != 2:
            return None
        everything, first = tally.layout.groupings[0], np.zeros(1, np.intp)
        ((_, found),) = multiples(
            self.bootstrap,
            pair_statistic(tally, 0, everything, first),
            pair_statistic(tally, counted.floor, everything, first),
            tally.pair_sums(0)[None],
            tally.pair_sums(counted.floor)[None],
            heaviest=tally.heaviest_of(everything).max(keepdims=True),
            inputs=np.array([tally.layout.rows]),
            order=tally.order,
        )
        return found

    def _effective(self) -> float | None:
        tally = self.counted.tally
        squares = tally.squares_of(tally.layout.groupings[0])
        if squares is None:
            return None
        weight = float(tally.generations[0].means[:, 0].sum())
        return effective_inputs(weight, float(squares.sum()))

    def _cases(self, place: int) -> AnyArray:
        tally = self.counted.tally
        return np.asarray(tally.case_counts(place, tally.layout.groupings[0]).sum(axis=0))

    def _flows(self, place: int) -> Iterator[Flow]:
        names, known = self.counted.classes, self.counted.tally.layout.truth
        flows = self.counted.tally.flows[place]
        found = dict(flows.most(_FLOWS))
        if known:  # with many classes, ways from wrong to wrong would leave no room for others
            found |= dict(flows.most_lost(_FLOWS))
        for (true, old, new), inputs in sorted(found.items(), key=lambda one: (-one[1], one[0])):
            yield Flow(names[true] if known else None, names[old], names[new], inputs)

    def _estimates(self, sampled: Sampled, cases: AnyArray | None = None) -> dict[str, Estimate]:
        if not sampled.values:
            return {}
        layout = self.counted.tally.layout
        if cases is None:  # of a generation, or of all: shares of all inputs
            cases = np.array([self.counted.tally.rows])
        wholes = wholes_of(sampled.values, cases[None], weighted=not layout.exact_shares)
        if len(self.counted.names) == 2 and "ambiguity" in wholes:  # of one pair: the same
            wholes["discrepancy"] = wholes["ambiguity"]
        return estimates(self.bootstrap, sampled, wholes)[0]

    def _average(self, results: Sequence[Sampled]) -> dict[str, Estimate]:
        """The mean over generations, or over pairs, of what all of them have."""
        names = [name for name in results[0].values if all(name in each.values for each in results)]
        if not names:
            return {}

        def mean(parts: Sequence[Metrics]) -> Metrics:
            every = [name for name in names if name in parts[0]]  # none without draws
            return {name: np.mean([each[name] for each in parts], axis=0) for name in every}

        sampled = Sampled(
            mean([each.values for each in results]),
            Ends(
                mean([each.ends.low for each in results]),
                mean([each.ends.high for each in results]),
            ),
        )
        return estimates(self.bootstrap, sampled, {})[0]  # a mean of shares is no share
