"""LightGBM: a snapshot is the booster cut to its first iterations, in its own text format."""

import inspect
import json
import re
from typing import Any

import numpy as np

from dynsnap._types import AnyArray, Labels, Scores
from dynsnap.boost import _check_lightgbm, _params_lightgbm
from dynsnap.boost._learner import (
    Cut,
    FitTask,
    Loaded,
    rates,
    seed,
    two_columns,
)
from dynsnap.boost._params_lightgbm import aliases, decided
from dynsnap.boost._saver import State
from dynsnap.boost._settings import numbered_class_weights, refuse_other_length
from dynsnap.boost._watch import EpochWatch
from dynsnap.ensemble import Recipe


class LightGBMLearner:
    """An `LGBMClassifier`, trained by its own `fit`."""

    kind = "lightgbm"

    def __init__(self, model: Any) -> None:
        import lightgbm

        _params_lightgbm.check(model)
        params = model.get_params()
        self._model = model
        self._rate = float(params["learning_rate"])
        self._module = lightgbm
        # What these keep from iteration to iteration is in no file, and cannot be made again.
        stateful = any(name.startswith("cegb_") and params[name] for name in params)
        names = aliases("device_type")
        device = next((params[name] for name in names if params.get(name)), "cpu")
        self._resumable = not stateful and not params.get("use_quantized_grad") and device == "cpu"

    @property
    def version(self) -> str:
        return str(self._module.__version__)

    def check(self, recipe: Recipe) -> None:
        """Every recipe without dropout will do, if the model is not set to another length."""
        refuse_other_length(self._model, sorted(aliases("num_iterations")), recipe.epochs)

    def open(self, state: State, task: FitTask, *, trust: bool) -> Any:
        text = state["booster"]
        if not trust:
            text, features = _check_lightgbm.check(text, len(task.classes), whole=True)
            task.check_fits(features)
        booster = self._module.Booster(model_str=text.decode())
        return booster, [int(length) for length in json.loads(state["lengths"])]

    def fit(self, task: FitTask, watch: EpochWatch, begun: Any) -> Cut:
        booster, lengths = begun or (None, [])
        schedule = rates(task.recipe, self._rate)

        # As with XGBoost, the library adds each new tree to the scores that it keeps.
        def look(_truth: Labels, scores: Scores) -> tuple[str, float, bool]:
            watch.show(two_columns(scores))
            return "seen", 0.0, True

        frequency: int | None = None  # of drawing the rows to learn from; -1 without columns

        def before(env: Any) -> None:
            nonlocal frequency
            epoch = len(watch.curve)
            if frequency is None:
                frequency = _bagging_frequency(env.model)
            if frequency < 0:
                return  # LightGBM takes no settings where there is nothing to learn from
            own = {"learning_rate": float(schedule[epoch]), "num_iterations": task.recipe.epochs}
            fresh = {"feature_fraction_seed": seed(task, epoch), "extra_seed": seed(task, epoch)}
            if frequency > 0:
                # The rows, which stay for some iterations, are drawn again in each of them.
                fresh["bagging_seed"] = seed(task, f"bag {epoch // frequency}")
                fresh["bagging_freq"] = frequency
            # Where LightGBM is in its random numbers is stored nowhere, so each iteration starts
            # new ones. What stays as it is would go on: all change to something else and back.
            env.model.reset_parameter({name: value + 1 for name, value in fresh.items()})
            env.model.reset_parameter({**fresh, **own})

        def after(env: Any) -> None:
            # An iteration that found nothing to split has left no trees.
            lengths.append(env.model.current_iteration())
            watch.rest((lambda: _state(env.model, lengths)) if self._resumable else None)

        before.before_iteration = True  # type: ignore[attr-defined]  # as LightGBM wants it said
        model = self._fresh().set_params(
            n_estimators=task.recipe.epochs - len(watch.curve),
            objective=None,  # binary or multiclass, by the labels
            metric="None",
            random_state=task.seed,
            n_jobs=1,
            deterministic=True,
            force_row_wise=True,
            verbosity=-1,
            **numbered_class_weights(self._model, task.classes),
        )
        # The labels are not looked at, but LightGBM wants each of them to be a known one.
        unused = np.zeros(len(task.validation), dtype=np.int64)
        # `eval_set` has another spelling since 4.7.
        new = "eval_X" in inspect.signature(model.fit).parameters
        shown = {"eval_X": task.validation, "eval_y": unused}
        model.fit(
            task.inputs,
            task.labels,
            eval_metric=look,
            callbacks=[before, after],
            init_model=booster,
            **(shown if new else {"eval_set": [tuple(shown.values())]}),
        )
        return lambda epoch: _text(model.booster_, lengths[epoch])

    def _fresh(self) -> Any:
        """An unfitted copy without other names of what the round decides, which would win."""
        from sklearn.base import clone

        skipped = decided()
        params = clone(self._model).get_params()
        return type(self._model)(
            **{name: value for name, value in params.items() if name not in skipped}
        )


def _bagging_frequency(booster: Any) -> int:
    """After how many iterations a booster draws its rows anew, -1 if no column says anything."""
    data = booster.train_set
    if not any(data.feature_num_bin(column) > 1 for column in range(data.num_feature())):
        return -1
    # The one place that says it, whichever of its names the user has chosen.
    found = re.search(r"\[bagging_freq: (\d+)\]", booster.model_to_string(num_iteration=1))
    return int(found[1]) if found else 0


def _state(booster: Any, lengths: list[int]) -> State:
    return {
        "booster": _text(booster, lengths[-1]),
        "lengths": json.dumps(lengths).encode(),
    }


def _text(booster: Any, iterations: int) -> bytes:
    return str(booster.model_to_string(num_iteration=iterations)).encode()


def load(payload: bytes, columns: int, *, trust: bool) -> Loaded:
    """A stored booster, ready to score."""
    import lightgbm

    width = None
    if not trust:
        payload, width = _check_lightgbm.check(payload, columns)
    booster = lightgbm.Booster(model_str=payload.decode())

    def predict(inputs: AnyArray) -> Scores:
        return two_columns(np.asarray(booster.predict(inputs)))

    return predict, width
