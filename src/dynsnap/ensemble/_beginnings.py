"""The first windows of a cyclic training are a shorter training: no round need be trained twice.

In every window the learning rate falls from the same height, and the best epoch of each is kept.
So nothing that a training does depends on how many windows are to come, and what it has kept after
N of them is what a training of N windows would have kept.
"""

from collections.abc import Iterable
from dataclasses import replace

from dynsnap.ensemble._protocols import Round, RoundSpec
from dynsnap.errors import InputError


def begins(spec: RoundSpec, longer: RoundSpec) -> bool:
    """Whether a round is the first windows of another one, given that one's randomness.

    Every round is the beginning of itself. A shorter one must end with a whole window: of half a
    window, a longer training need not have kept the best epoch.

    Example:
        >>> from dynsnap.ensemble import method
        >>> long, short = (RoundSpec(recipe=method(name, epochs=200).recipe, generation=1)
        ...                for name in ("snapshot", "dynsnap-cyc"))
        >>> begins(short, long), begins(long, short)
        (True, False)
    """
    short, long = spec.recipe, longer.recipe
    if replace(spec, recipe=long) != longer:
        return False
    if short == long:
        return True
    if short.selection != "window" or long.selection != "window":
        return False
    alike = replace(short, epochs=long.epochs, snapshots=long.snapshots) == long
    whole = short.epochs == short.snapshots * short.window
    return alike and whole and short.window == long.window and short.epochs < long.epochs


def longest(spec: RoundSpec, among: Iterable[RoundSpec]) -> RoundSpec:
    """The longest of these rounds that a round is the beginning of; itself where there is none."""
    able = [one for one in among if begins(spec, one)]
    return max(able, key=lambda one: one.recipe.epochs, default=spec)


def beginning(done: Round, spec: RoundSpec) -> Round:
    """A round cut down to its first windows: their snapshots, epochs, and share of the time.

    Example:
        >>> import numpy as np
        >>> from dynsnap.ensemble import method
        >>> long, short = (RoundSpec(recipe=method(name, epochs=20).recipe, generation=1)
        ...                for name in ("snapshot", "dynsnap-cyc"))
        >>> done = Round(spec=long, accuracy=np.full(20, 0.5), epochs=np.arange(0, 40, 2),
        ...              scores={}, curve=np.full(40, 0.5), seconds=60.0)
        >>> cut = beginning(done, short)
        >>> len(cut.accuracy), len(cut.curve), cut.seconds
        (10, 20, 30.0)
    """
    if done.spec == spec:
        return done
    if not begins(spec, done.spec):
        raise InputError(f"{spec} is not the beginning of {done.spec}.")
    recipe = spec.recipe
    return Round(
        spec=spec,
        accuracy=done.accuracy[: recipe.members],
        epochs=done.epochs[: recipe.members],
        scores={name: scores[: recipe.members] for name, scores in done.scores.items()},
        curve=done.curve[: recipe.epochs],
        weights=done.weights[: recipe.snapshots],
        seconds=done.seconds * recipe.epochs / done.spec.recipe.epochs,
    )
