"""What the manifests of dynsnap's own files may say. A key that is not named here is refused."""

from collections.abc import Iterator
from typing import Any

from dynsnap._untrusted import (
    AnyOf,
    Flag,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    Plain,
    Schema,
    Table,
    Text,
    Whole,
    mismatch,
)
from dynsnap.data import COLUMNS
from dynsnap.ensemble import COMBINATIONS
from dynsnap.store._container import sums_of

MOST_CLASSES = 100_000
MOST_MEMBERS = 10_000
MOST_SCORES = 1 << 24  # of all members for one input
_MOST_PIXELS = 4096  # of an image's side

_NAME = Text(free=True)  # of a class or a column
TRAINER = Text(form=r"[\w.-]{1,100}")  # its name
_FORMAT = Whole(1, 1000)
_SEED = Whole(0, 2**128)
_ENVIRONMENT = MapOf(Text(), most=1000)


class _Model:
    """The name of a built-in model, the reference of the maker's own, or a trainer, with settings.

    None of them chooses what is imported: see `trainers.saved_by`.
    """

    def problems(self, value: Any, where: str, /) -> Iterator[str]:
        if isinstance(value, dict) and "backend" in value:  # of the estimator
            yield from Table({"backend": TRAINER}).problems(value, where)
            return
        settings = MapOf(Plain(), key=Text(form=r"[^\W\d]\w*"), most=1000)
        if (problem := mismatch(settings, value, where)) is not None:
            yield problem
            return
        if "trainer" in value:  # which may need neither
            yield from TRAINER.problems(value["trainer"], f"{where}.trainer")
        elif "name" not in value and "factory" not in value:
            yield f"`{where}` must have either a `name` or a `factory`"
        if "name" in value and "factory" in value:
            yield f"`{where}` must have either a `name` or a `factory`"
            return
        for word in {"name", "factory"} & value.keys():
            yield from Text(longest=500).problems(value[word], f"{where}.{word}")


# The options that new inputs are read with, as `data.reading_options` gives them.
_READING = Table(
    {},
    {
        "label": _NAME,
        "text": _NAME,
        "id": _NAME,
        "features": ListOf(_NAME, most=1_000_000, distinct=True),
        "size": ListOf(Whole(1, _MOST_PIXELS), least=2, most=2),
        "grey": Flag(),
        "frame": COLUMNS,
        "allow_missing": Flag(),
    },
)
LEARNED: Schema = ListOf(ListOf(Whole(0, MOST_CLASSES), least=1, distinct=True), most=MOST_MEMBERS)
ENSEMBLE: Schema = Table(
    {
        "kind": OneOf(("ensemble",)),
        "format": _FORMAT,
        "method": Text(longest=500),
        "generation": Whole(0, 1_000_000),
        "combination": OneOf(COMBINATIONS),
        "classes": ListOf(_NAME, least=1, most=MOST_CLASSES, distinct=True),
        "accuracy": ListOf(Number(0, 1), least=1, most=MOST_MEMBERS),
        "positions": ListOf(Whole(0, MOST_MEMBERS), least=1, most=MOST_MEMBERS, distinct=True),
        "model": _Model(),
        "about": Table(
            {},
            {
                "study": Text(),
                "reading": _READING,
                "dynsnap": Text(),
                "environment": _ENVIRONMENT,
                "cost": Number(0),
                "seconds": Number(0),
                "estimator": MapOf(Plain()),  # which the estimator checks further
            },
        ),
        "sha256": sums_of(r"learner\.\d{4,6}\.bin"),
    },
    {"known": ListOf(ListOf(Flag(), most=MOST_CLASSES), most=MOST_MEMBERS)},
)
ROUND: Schema = Table(
    {
        "format": _FORMAT,
        "key": Text(form="[0-9A-Za-z_-]{1,200}"),
        "name": Text(),
        "spec": Table(
            {
                "recipe": Table(
                    {
                        "schedule": Table(
                            {
                                "kind": OneOf(("cyclic", "step", "constant", "custom")),
                                "factors": ListOf(Number(0), most=1_000_000),
                            }
                        ),
                        "epochs": Whole(1, 1_000_000_000),
                        "snapshots": Whole(1, 1_000_000),
                        "selection": OneOf(("window", "top", "last")),
                        "dropout": Number(0, 1),
                        "passes": Whole(1, 10_000_000),
                    },
                    {
                        "average": Number(0, 1),
                        "smoothing": Number(0, 1),
                        "rate": Number(0),
                        "codistill": Number(0, 1),
                    },
                ),
                "generation": Whole(1, 1_000_000),
                "replicate": Whole(0, 1_000_000),
                "index": Whole(0, 1_000_000),
                "seed": _SEED,
                "twin": Whole(0, 1),
                "parent": AnyOf(Null(), Text(longest=500)),
            },
            {
                "distillation": Table(
                    {
                        "teacher": Text(longest=500),
                        "weight": Number(0, 1),
                        "temperature": Number(0),
                        "rows": OneOf(("all", "right", "wrong")),
                        "views": Whole(1, 10_000_000),
                    },
                    {"classes": OneOf(("known", "all"))},
                ),
                "new_class_weight": Number(1),
                "interpolate": Flag(),
                "by_time": Flag(),
            },
        ),
        "seed": _SEED,
        "best_accuracy": Number(0, 1),
        "seconds": Number(0),
        "cost": AnyOf(Null(), Number(0)),
        "environment": _ENVIRONMENT,
        "sha256": sums_of(
            r"(accuracy|epochs|curve|selection(_curve)?|scores\.[^/\\]{1,200})\.npy|weights\.\d{4,6}\.bin"
        ),
    }
)
RUN: Schema = Table({"kind": OneOf(("run",)), "format": _FORMAT})
