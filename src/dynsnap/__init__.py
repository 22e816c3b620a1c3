"""dynsnap: measure, and keep, the consistency of classifiers that are retrained.

    >>> import dynsnap
    >>> old = dynsnap.Predictions(ids=[1, 2, 3], classes=["cat", "dog"],
    ...                           labels=["cat", "dog", "dog"], truth=["cat", "dog", "cat"])
    >>> new = dynsnap.Predictions(ids=[1, 2, 3], classes=["cat", "dog"],
    ...                           labels=["cat", "cat", "cat"], truth=["cat", "dog", "cat"])
    >>> round(dynsnap.compare(old, new).pairs[0].metrics["consistency"].value, 3)
    0.333

Names are loaded when they are first used, so that `import dynsnap` stays light.
"""

TYPE_CHECKING = False  # typing itself takes longer to load than this module
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

# Public name -> the module that holds it.
_HOMES = {
    "Predictions": "dynsnap.predictions",
    "align": "dynsnap.predictions",
    "read": "dynsnap.predictions",
    "stabilize": "dynsnap.predictions",
    "compare": "dynsnap.comparison",
    "DynSnapClassifier": "dynsnap.estimator",
    "EnsemblePlan": "dynsnap.ensemble",
    "SnapshotKeeper": "dynsnap.keeper",
}
_ROOMS = (
    "comparison",
    "data",
    "ensemble",
    "errors",
    "gate",
    "metrics",
    "predictions",
    "stabilizing",
    "theory",
)

__all__ = [*_HOMES, *_ROOMS, "__version__"]  # noqa: PLE0604 (the keys are strings)

if TYPE_CHECKING:
    from dynsnap.comparison import compare as compare
    from dynsnap.ensemble import EnsemblePlan as EnsemblePlan
    from dynsnap.estimator import DynSnapClassifier as DynSnapClassifier
    from dynsnap.keeper import SnapshotKeeper as SnapshotKeeper
    from dynsnap.predictions import Predictions as Predictions
    from dynsnap.predictions import align as align
    from dynsnap.predictions import read as read
    from dynsnap.predictions import stabilize as stabilize


def __getattr__(name: str) -> "Any":
    import importlib

    if name in _HOMES:
        try:
            return getattr(importlib.import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            library = (error.name or __name__).partition(".")[0]
            if library == __name__:
                raise
            raise ModuleNotFoundError(
                f"{name} needs {library}, which is not installed. Install it with: "
                "pip install 'dynsnap[torch]', or 'dynsnap[boost]'",
                name=library,
            ) from error
    if name == "stand":
        from dynsnap._renamed import renamed_functions

        return renamed_functions(__name__, {"stand": "stabilize"})(name)
    if name in _ROOMS:
        return importlib.import_module(f"dynsnap.{name}")
    raise AttributeError(f"module 'dynsnap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
