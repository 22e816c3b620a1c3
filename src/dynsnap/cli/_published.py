"""What may stand in the small files of a run folder and of published results."""

from dynsnap._untrusted import (
    AnyOf,
    ListOf,
    MapOf,
    Null,
    Number,
    Schema,
    Table,
    Text,
    Whole,
)

_NAME = Text(free=True)  # of a class
_SHARE = Number(0, 1)

# All keys may be missing: older versions wrote fewer of them.
ABOUT: Schema = Table(
    {},
    {
        "study": Text(),
        "dynsnap": Text(),
        "environment": MapOf(Text(), most=1000),
        "hardware": MapOf(AnyOf(Null(), Whole(), Text()), most=1000),
        "engine": Text(),
        "generations": ListOf(Whole(), most=1_000_000),
        "training_rows": MapOf(ListOf(Whole(), least=1, most=1_000_000), key=_NAME),
        "test_inputs": Whole(),
        "replicates": Whole(),
        "rounds": Whole(),
        "rounds_missing": Whole(),
        "rounds_trained_last": Whole(),
        "training_seconds": Number(0),
        "wall_seconds_last": Number(0),
    },
)

_CURVE = Table(
    {
        "method": Text(),
        "name": Text(),
        "accuracy": ListOf(_SHARE, least=1, most=1_000_000),
        "epochs": ListOf(Whole(0, 1_000_000), most=1_000_000),
        "snapshots": ListOf(_SHARE, most=1_000_000),
        "threshold": AnyOf(Null(), _SHARE),
    }
)
_EFFECT = Table({"change": Number(-1, 1), "low": Number(-1, 1), "high": Number(-1, 1)})
_AUDIT = Table(
    {
        "title": Text(),
        "members": Whole(1),
        "inputs": Whole(1),
        "classes": Whole(1),
        "order": Number(1),
        "bounds": ListOf(Table({"name": Text(), "claim": Text()}), most=1000),
        "accuracy_bounds": AnyOf(
            Null(),
            Table(
                {"name": Text(), "claim": Text(), "low": _SHARE, "value": _SHARE, "high": _SHARE}
            ),
        ),
        "standings": ListOf(
            Table(
                {
                    "metric": Text(),
                    "ensemble": _SHARE,
                    "mean_member": _SHARE,
                    "best_member": _SHARE,
                    "best_position": Whole(),
                }
            ),
            most=1000,
        ),
        "effects": AnyOf(
            Null(),
            Table(
                {
                    "whole": _SHARE,
                    "members": ListOf(_EFFECT, most=1_000_000),
                    "mean": _EFFECT,
                    "confidence": _SHARE,
                    "resamples": Whole(1),
                }
            ),
        ),
        "honest": Text(),
        "notes": ListOf(Text(), most=1000),
    }
)
TRAINING: Schema = Table({"curves": ListOf(_CURVE, most=1000), "audits": ListOf(_AUDIT, most=1000)})
