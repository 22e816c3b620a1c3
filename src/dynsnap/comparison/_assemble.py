"""From sums to results: values, intervals, tests, groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dynsnap._types import AnyArray, Floats
from dynsnap.comparison._bootstrap import Bootstrap, Metrics, Sampled
from dynsnap.comparison._corrected import corrected
from dynsnap.comparison._count import Counted
from dynsnap.comparison._families import lost_between
from dynsnap.comparison._groups import group_results
from dynsnap.comparison._notes import notes
from dynsnap.comparison._readings import estimates, mcnemar, transitions
from dynsnap.comparison._results import (
    Comparison,
    Estimate,
    Estimates,
    Flow,
    GenerationResult,
    PairResult,
)
from dynsnap.metrics._tally_formulas import (
    agreement_metrics,
    cohen_kappa,
    generation_metrics,
    pair_metrics,
)

_FLOWS = 300  # kinds of change that a result names


def assemble(counted: Counted, bootstrap: Bootstrap, *, minority_share: float) -> Comparison:
    """Everything that a comparison finds, from the sums."""
    return _Assembly(counted, bootstrap, minority_share).comparison()


@dataclass(frozen=True)
class _Assembly:
    counted: Counted
    bootstrap: Bootstrap
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
        measured = {each.name: each.metrics for each in generations}
        measured |= {f"{pair.old} → {pair.new}": pair.metrics for pair in pairs}
        measured["all generations"] = agreement
        if floor is not None:
            measured[f"{counted.names[0]} and its twin"] = floor
        return Comparison(
            inputs=layout.rows,
            classes=counted.classes,
            generations=generations,
            pairs=pairs,
            averages=self._estimates(_average(alone)) | self._estimates(_average(together)),
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
            restless=counted.gallery.restless,
            ambiguity_so_far=counted.gallery.ambiguity,
        )

    def _generation(self, generation: int) -> Sampled:
        tally = self.counted.tally
        sums = tally.generations[generation]
        formula = partial(generation_metrics, columns=tally.layout.generation_columns(generation))
        return self.bootstrap.sampled(formula, sums.means[None], sums.gaps[None])

    def _pair(self, place: int) -> Sampled:
        tally = self.counted.tally
        old, new = (tally.generations[g].labels for g in tally.layout.pairs[place])
        sums = tally.pair_sums(place)
        found = self.bootstrap.sampled(self._pair_formula(place), sums[None])

        def kappa(sums: Floats, old: Floats, new: Floats) -> Metrics:
            churn = self._pair_formula(place)(sums)["churn"]
            return {"cohen_kappa": cohen_kappa(churn, old, new)}

        # Label frequencies are kept in fewer blocks when there are very many classes.
        coarse = _folded(sums, tally.layout.label_blocks)
        more = self.bootstrap.sampled(kappa, coarse[None], old[None], new[None])
        return Sampled({**found.values, **more.values}, {**found.samples, **more.samples})

    def _pair_formula(self, place: int) -> "partial[dict[str, Floats]]":
        layout = self.counted.tally.layout
        columns = layout.pair_columns(layout.pairs[place])
        return partial(pair_metrics, columns=columns, truth=layout.truth)

    def _agreement(self, pairs: int) -> Sampled:
        tally = self.counted.tally
        regular = len(self.counted.names)
        blocks = tally.layout.label_blocks
        labels = [sums.labels[None] for sums in tally.generations[:regular]]
        weight = tally.generations[0].means[:, 0]
        ambiguous = np.stack([tally.ambiguous, weight], axis=-1)
        cells = [_folded(tally.pair_sums(place), blocks)[None] for place in range(pairs)]

        def formula(ambiguous: Floats, *sums: Floats) -> Metrics:
            churns = [self._pair_formula(p)(sums[p])["churn"] for p in range(pairs)]
            share = ambiguous[..., 0] / ambiguous[..., 1]
            return agreement_metrics(
                churns,
                sums[pairs:],
                ambiguity=churns[0] if regular == 2 else share,
                values=tally.layout.rows * regular,
            )

        return self.bootstrap.sampled(formula, _folded(ambiguous, blocks)[None], *cells, *labels)

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
                    formula=self._pair_formula(place),
                    minority_share=self.minority_share,
                )
            ),
            noise_floor=floor,
            flipped=counted.gallery.flipped(*tally.layout.pairs[place]),
        )

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
        if cases is None:  # of a generation, or of all: shares of all inputs
            cases = np.array([self.counted.tally.layout.rows])
        return estimates(self.bootstrap, sampled, cases[None])[0]


def _average(results: Sequence[Sampled]) -> Sampled:
    """The mean over generations, or over pairs, of what all of them have."""
    names = [name for name in results[0].values if all(name in each.values for each in results)]
    return Sampled(
        {name: np.mean([each.values[name] for each in results], axis=0) for name in names},
        {name: np.mean([each.samples[name] for each in results], axis=0) for name in names},
    )


def _folded(sums: Floats, blocks: int) -> Floats:
    """The same sums in fewer blocks."""
    if blocks == len(sums):
        return sums
    coarse = np.zeros((blocks, *sums.shape[1:]))
    np.add.at(coarse, np.arange(len(sums)) % blocks, sums)
    return coarse
