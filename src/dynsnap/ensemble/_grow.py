"""Dynamic snapshot ensembles: the paper's Algorithm 1, a wave of rounds at a time."""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynsnap._types import Accuracies, MemberScores, Positions, Scores
from dynsnap.ensemble._plan import MOST_ROUNDS, TOLERANCE, EnsemblePlan, survivors
from dynsnap.ensemble._protocols import Engine, RoundStore, Trainer, round_key, serial
from dynsnap.ensemble._recipe import Recipe
from dynsnap.ensemble._rounds import Round, RoundSpec
from dynsnap.errors import InputError, PlanError, TrainingError

INPUTS = 5000  # the most inputs that an "auto" size is decided by: bounds memory and time
FEWEST = 2  # rounds that an "auto" size needs, to compare one with the other


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The learners that an ensemble is made of.

    Attributes:
        accuracy: Validation accuracy of each, the weight of the weighted combinations.
        scores: Their scores on each evaluation set, by its name.
        origin: Where each comes from: the position of its round among the rounds given, and its
            position in that round.
    """

    accuracy: Accuracies
    scores: Mapping[str, MemberScores]
    origin: tuple[tuple[int, int], ...]

    def __len__(self) -> int:
        return len(self.origin)


def members(plan: EnsemblePlan, rounds: Sequence[Round]) -> Members:
    """The learners that these rounds give, in the order of the rounds, best first in each.

    Rounds beyond those that fill the ensemble are ignored, so ensembles of many sizes may be cut
    from the same rounds. An ensemble of the size "auto" takes all rounds that it gets.
    """
    if not rounds:
        raise InputError("There are no members without rounds: train one first, with `grow`.")
    kept: list[tuple[Round, int, Positions]] = []
    missing = sum(_counts(plan, rounds)) if plan.size == "auto" else plan.size
    for position, done in enumerate(rounds[: rounds_used(plan, rounds)]):
        best = _kept(plan, done)[:missing]
        kept.append((done, position, best))
        missing -= len(best)
    names = rounds[0].scores.keys()
    for done, _, _ in kept:
        if done.scores.keys() != names:
            raise InputError(
                f"{done.spec} has scores on {sorted(done.scores)}, but the first round on "
                f"{sorted(names)}. Score all rounds on the same sets."
            )
    return Members(
        accuracy=np.concatenate([done.accuracy[best] for done, _, best in kept]),
        scores={
            name: np.concatenate([done.scores[name][best] for done, _, best in kept])
            for name in names
        },
        origin=tuple((position, int(j)) for _, position, best in kept for j in best),
    )


def wanted(plan: EnsemblePlan, rounds: Sequence[Round]) -> int:
    """How many more rounds are certain to be needed; 0 when the ensemble is full.

    A round adds at most `plan.most_per_round` members, so a one-at-a-time loop would need every
    one of these too. Training them side by side wastes nothing, a study may pool the rounds of all
    its ensembles, and the ensemble does not depend on which process trains it.

    An ensemble of the size "auto" needs two rounds, and then one at a time, as long as that one is
    expected to gain the tolerance: see `expected_gain`. Its rounds must have their scores, on rows
    that no round ever trains on where there are any, else on the test set. Truth is not used.

    Example:
        >>> wanted(EnsemblePlan(size=20, snapshots=10), [])
        2
    """
    have = sum(_counts(plan, rounds))
    if plan.size == "auto":
        return _wanted_automatically(plan, rounds)
    return max(0, math.ceil((plan.size - have) / plan.most_per_round))


def expected_gain(rounds: Sequence[Scores]) -> float:
    """How much more of the inputs two ensembles would label alike if each had one more round.

    Two ensembles that are grown alike on the same data still disagree on some inputs. The error of
    an average of r rounds falls as 1/√r, and so does the share of inputs near enough to a boundary
    for it to matter; docs/size.md shows how well that holds. So the rounds are cut into two halves,
    in as many ways as there are rounds, and the share of inputs on which the halves disagree is
    scaled from half the rounds to all of them, and to one more. It takes no truth and no training.

    Args:
        rounds: The summed scores of each round's members on the same inputs.

    Example:
        >>> always, never = np.array([[0.9, 0.1]]), np.array([[0.2, 0.8]])
        >>> expected_gain([always, always])
        0.0
        >>> round(expected_gain([always, never]), 3)  # 1 / √2 - 1 / √3
        0.13
    """
    if len(rounds) < FEWEST:
        raise InputError(
            f"The gain of another round shows from {FEWEST} rounds on, got {len(rounds)}."
        )
    count = len(rounds)
    half = count // 2
    apart = []
    for start in range(count):
        turned = [rounds[(start + place) % count] for place in range(2 * half)]
        one, other = sum(turned[:half]), sum(turned[half:])
        apart.append(np.mean(np.argmax(one, axis=1) != np.argmax(other, axis=1)))
    at_one = math.sqrt(half) * float(np.mean(apart))
    return at_one * (1 / math.sqrt(count) - 1 / math.sqrt(count + 1))


def rounds_used(plan: EnsemblePlan, rounds: Sequence[Round]) -> int:
    """How many of these rounds, from the first on, the ensemble takes members from.

    Example:
        >>> rounds_used(EnsemblePlan(), [])
        0
    """
    have = [0, *itertools.accumulate(_counts(plan, rounds))]
    if plan.size == "auto":
        return len(rounds)
    return sum(count < plan.size for count in have[:-1])


def grow(
    plan: EnsemblePlan,
    trainer: Trainer,
    *,
    recipe: Recipe,
    generation: int,
    replicate: int = 0,
    seed: int = 0,
    engine: Engine = serial,
    store: RoundStore | None = None,
) -> Members:
    """Train rounds until `plan.size` snapshots have survived pruning: Algorithm 1.

    Rounds that `store` holds are taken from there, and new ones are put there.
    """
    rounds = grow_rounds(
        plan,
        trainer,
        recipe=recipe,
        generation=generation,
        replicate=replicate,
        seed=seed,
        engine=engine,
        store=store,
    )
    return members(plan, rounds)


def grow_rounds(
    plan: EnsemblePlan,
    trainer: Trainer,
    *,
    recipe: Recipe,
    generation: int,
    replicate: int = 0,
    seed: int = 0,
    engine: Engine = serial,
    store: RoundStore | None = None,
) -> tuple[Round, ...]:
    """The rounds that fill the ensemble: like `grow`, with weights and costs."""
    if plan.snapshots != recipe.members:
        raise PlanError(
            f"The plan counts on {plan.snapshots} snapshots from each round, but the recipe yields "
            f"{recipe.members}. Make them equal."
        )
    rounds: list[Round] = []
    while more := wanted(plan, rounds):
        specs = [
            RoundSpec(
                recipe=recipe,
                generation=generation,
                replicate=replicate,
                index=len(rounds) + offset,
                seed=seed,
            )
            for offset in range(more)
        ]
        rounds.extend(train_rounds(specs, trainer, engine=engine, store=store))
    return tuple(rounds)


def train_rounds(
    specs: Sequence[RoundSpec],
    trainer: Trainer,
    *,
    engine: Engine = serial,
    store: RoundStore | None = None,
) -> list[Round]:
    """These rounds in this order: from the store where it has them, else trained and stored.

    Each is stored as soon as it is done, so that a killed run loses only the rounds in progress.
    """
    done: dict[RoundSpec, Round] = {}
    if store is not None:
        for spec in specs:
            if (found := store.get(round_key(trainer, spec), spec)) is not None:
                done[spec] = found
    missing = [spec for spec in dict.fromkeys(specs) if spec not in done]
    if missing:
        for fresh in received(engine(trainer, missing), missing):
            if store is not None:
                store.put(round_key(trainer, fresh.spec), fresh)
            done[fresh.spec] = fresh
    return [done[spec] for spec in specs]


def received(rounds: Iterable[Round], asked: Collection[RoundSpec]) -> Iterator[Round]:
    """Pass on the rounds of an engine, and raise unless each asked for comes once, and no other.

    Args:
        rounds: What the engine yields.
        asked: The rounds that were asked for. More may be added while the engine runs.
    """
    came: set[RoundSpec] = set()
    for done in rounds:
        if done.spec in came or done.spec not in asked:
            raise TrainingError(f"The trainer gave {done.spec}, which was not asked for.")
        came.add(done.spec)
        yield done
    lacking = [str(spec) for spec in asked if spec not in came]
    if lacking:
        raise TrainingError(f"The trainer did not give {'; '.join(lacking)}.")


def _wanted_automatically(plan: EnsemblePlan, rounds: Sequence[Round]) -> int:
    if len(rounds) < FEWEST:
        return FEWEST - len(rounds)
    if len(rounds) >= (plan.most_rounds or MOST_ROUNDS):
        return 0
    gain = expected_gain([_summed_scores(plan, done) for done in rounds])
    return int(gain >= (plan.tolerance or TOLERANCE))


def _summed_scores(plan: EnsemblePlan, done: Round) -> Scores:
    """The summed scores of a round's members on the inputs that growth is decided by."""
    known = [name for name in ("untouched", "test") if name in done.scores]
    if not known:
        raise InputError(f"{done.spec} comes without scores, which the size is decided by.")
    scores = done.scores[known[0]]
    seen = scores[_kept(plan, done), :: -(-scores.shape[1] // INPUTS)]
    # In half precision, so that a store in half precision leads to the same decision.
    return np.asarray(np.asarray(seen, np.float16).sum(axis=0, dtype=np.float64))


def _kept(plan: EnsemblePlan, done: Round) -> Positions:
    return survivors(done.judged, beta=plan.beta)[: plan.top]


def _counts(plan: EnsemblePlan, rounds: Sequence[Round]) -> list[int]:
    """Members that each round gives, after a check that the rounds belong together."""
    names = {(s.recipe, s.generation, s.replicate, s.twin) for s in (done.spec for done in rounds)}
    indices = [done.spec.index for done in rounds]
    if len(names) > 1 or any(b <= a for a, b in itertools.pairwise(indices)):
        raise InputError(
            "Members come from rounds of one recipe, generation and replicate in the order of "
            f"their index, but these were given: {'; '.join(str(done.spec) for done in rounds)}."
        )
    for done in rounds:
        if done.spec.recipe.members != plan.snapshots:
            raise PlanError(
                f"The plan counts on {plan.snapshots} snapshots from each round, but {done.spec} "
                f"has {done.spec.recipe.members}."
            )
    return [len(_kept(plan, done)) for done in rounds]
