"""What every engine must keep to."""

from collections.abc import Sequence

from dynsnap.ensemble import Engine, Recipe, RoundSpec, Trainer, serial
from dynsnap.errors import DynSnapError
from dynsnap.testing._rounds import assert_same_round


def check_engine(
    engine: Engine, trainer: Trainer, *, recipes: Sequence[Recipe], tolerance: float = 0.0
) -> None:
    """Fail unless an engine keeps its contract.

    It hands back every round that it was asked for, once and in any order, each equal to what the
    serial engine gives, also when asked a second time and for fewer; asked for nothing, it gives
    nothing; what the trainer raises arrives, as it is where dynsnap raises it on purpose.

    Args:
        engine: What is checked.
        trainer: Trains for it.
        recipes: Two rounds of each are trained twice: keep them small.
        tolerance: How far scores of the same round may be apart; 0 on a CPU.
    """
    assert list(engine(trainer, [])) == [], "rounds were given, though none were asked for"
    specs = [
        RoundSpec(recipe=recipe, generation=1, index=index)
        for recipe in recipes
        for index in (0, 1)
    ]
    assert specs, "give at least one recipe to check"
    expected = {done.spec: done for done in serial(trainer, specs)}
    found = list(engine(trainer, specs))
    assert len(found) == len(specs), f"{len(specs)} rounds were asked for, {len(found)} given"
    assert {done.spec for done in found} == set(specs), "other rounds were given than asked for"
    for done in found:
        assert_same_round(done, expected[done.spec], tolerance=tolerance)
    again = list(engine(trainer, specs[:1]))
    assert [done.spec for done in again] == specs[:1], "asked again, it gave other rounds"
    assert_same_round(again[0], expected[specs[0]], tolerance=tolerance)
    impossible = RoundSpec(recipe=recipes[0], generation=10**6)
    own = _raised(serial, trainer, impossible)
    found_error = _raised(engine, trainer, impossible)
    assert found_error is not None, "a round that cannot be trained raised nothing"
    if isinstance(own, DynSnapError):
        same = type(found_error) is type(own) and str(found_error) == str(own)
        assert same, f"the trainer raised {own!r}, but {found_error!r} arrived"


def _raised(engine: Engine, trainer: Trainer, spec: RoundSpec) -> Exception | None:
    try:
        list(engine(trainer, [spec]))
    except Exception as error:  # of whatever kind the trainer has
        return error
    return None
