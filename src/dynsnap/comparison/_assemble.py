"""From sums to results: values, intervals, tests, groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._corrected import corrected
from dynsnap.comparison._count import Counted
from dynsnap.comparison._families import lost_between
from dynsnap.comparison._groups import group_results
from dynsnap.comparison._notes import notes
from dynsnap.comparison._readings import (
    effective_inputs,
    estimates,
    exact_of,
    mcnemar,
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
    Ends,
    GenerationStatistic,
    Metrics,
    PairStatistic,
    Sampled,
    Statistic,
)

_FLOWS = 300  # kinds of change that a result names


def assemble(
    counted: Counted, bootstrap: BayesianBootstrap, *, minority_share: float
) -> Comparison:
    """Everything that a comparison finds, from the sums."""
    return _Assembly(counted, bootstrap, minority_share).comparison()


@dataclass(frozen=True)
class _Assembly:
    counted: Counted
    bootstrap: BayesianBootstrap
    minority_share: float

    def comparison(self) -> Comparison:
        counted, layout = self.counted, self.counted.tally.layout
        regular = range(len(counted.names))
        alone = [self._generation(g) for g in regular]
        together = [self._pair(place) for place in range(len(layout.pairs))]
        cases = [self._cases(place) for place in range(len(layout.pairs))]
        floor = self._estimates(together.pop(), cases.pop()) if counted.twin else None
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
        measured = {each.name: each.metrics for each in generations}
        measured |= {f"{pair.old} → {pair.new}": pair.metrics for pair in pairs}
        measured["all generations"] = agreement
        if floor is not None:
            measured[f"{counted.names[0]} and its twin"] = floor
        counting = counted.tally.counting_of(layout.groupings[0])
        return Comparison(
            inputs=layout.rows,
            classes=counted.classes,
            generations=generations,
            pairs=pairs,
            averages={**self._average(alone), **averages},
            agreement=agreement,
            alignment=counted.report,
            notes=notes(counted, measured),
            confidence=self.bootstrap.confidence,
            resamples=self.bootstrap.resamples,
            weighted=layout.weighted,
            has_truth=layout.truth,
            has_scores=all(layout.scored),
            slices=counted.slices,
            families=counted.families,
            unknown_labels=counted.unknown_labels,
            unstable=counted.gallery.unstable,
            ambiguity_so_far=counted.gallery.ambiguity,
            counting=None if counting is None else int(counting.sum()),
            effective=self._effective(),
        )

    def _generation(self, generation: int) -> Sampled:
        tally = self.counted.tally
        sums = tally.generations[generation]
        statistic = GenerationStatistic(tally.layout.generation_columns(generation))
        return self._sampled(statistic, sums.means, sums.gaps)

    def _pair(self, place: int) -> Sampled:
        tally, layout = self.counted.tally, self.counted.tally.layout
        old, new = (tally.generations[g].labels for g in layout.pairs[place])
        columns = layout.pair_columns(layout.pairs[place])
        exact = exact_of(columns, weighted=layout.weighted)
        if len(self.counted.names) > 2:  # averages over pairs are means of shares, which are none
            exact = frozenset()
        statistic = PairStatistic(columns, layout.truth, exact=exact)
        sums = tally.pair_sums(place)[:, : len(layout.cases) + len(columns)]
        found = self._sampled(statistic, sums)
        # Label frequencies are kept in fewer blocks when there are very many classes.
        kappa = self._sampled(CohenStatistic(layout.truth), self._folded_cases(place), old, new)
        return Sampled(
            {**found.values, **kappa.values},
            Ends(
                {**found.ends.low, **kappa.ends.low},
                {**found.ends.high, **kappa.ends.high},
            ),
        )

    def _agreement(self, pairs: int) -> Sampled:
        tally = self.counted.tally
        regular = len(self.counted.names)
        labels = [sums.labels for sums in tally.generations[:regular]]
        ambiguous = np.stack([tally.ambiguous, tally.generations[0].means[:, 0]], axis=-1)
        statistic = AgreementStatistic(pairs, tally.layout.truth, tally.layout.rows * regular)
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
            heaviest=tally.heaviest_of(tally.layout.groupings[0]).max(keepdims=True),
            inputs=np.array([tally.layout.rows]),
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
            mcnemar=mcnemar(cases),
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
            flipped=counted.gallery.flipped(*tally.layout.pairs[place]),
        )

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
            cases = np.array([layout.rows])
        wholes = wholes_of(sampled.values, cases[None], weighted=layout.weighted)
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
