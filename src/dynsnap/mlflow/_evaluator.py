"""An evaluator of MLflow: a model's consistency with the champion, beside its accuracy.

`mlflow.models.evaluate(..., evaluators="dynsnap", evaluator_config={"champion": ...})` finds it by
the entry point `mlflow.model_evaluator`.
"""

import difflib
import json
import tempfile
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from mlflow.models.evaluation import EvaluationResult, ModelEvaluator

from dynsnap import comparison, gate, predictions, report
from dynsnap.errors import PlanError, did_you_mean
from dynsnap.mlflow._addresses import PREDICTIONS, fetched, log_predictions
from dynsnap.predictions import Predictions

_SETTINGS = ("champion", "id", "at_least", "at_most", "rules")
_SCORE = "score:"


class DynSnapEvaluator(ModelEvaluator):  # type: ignore[misc]
    """Logs the predictions, consistency metrics, the page and the verdict.

    Settings in `evaluator_config`:

    * `champion`: the address of the deployed model's predictions; without it only predictions and
      the metrics of one generation are logged, so that the next model has something to compare to.
    * `id`: the column that identifies an input; by default rows are numbered.
    * `rules`: a file of rules; `at_least`, `at_most`: lists of rules such as "lost=0.03".
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any, **_: Any) -> bool:
        """Whether this is a classifier, and the settings, if any, are meant for this evaluator.

        MLflow asks all evaluators if none is named, and hands the same settings to each.
        """
        names = [str(name) for name in evaluator_config or {}]
        meant = not names or any(difflib.get_close_matches(name, _SETTINGS) for name in names)
        return model_type == "classifier" and meant

    def evaluate(
        self,
        *,
        model_type: str,
        dataset: Any,
        run_id: str,
        evaluator_config: Any,
        model: Any = None,
        extra_metrics: Any = None,
        custom_artifacts: Any = None,
        predictions: Any = None,
        **_: Any,
    ) -> Any:
        settings = dict(evaluator_config or {})
        for name in settings:
            if name not in _SETTINGS:
                raise PlanError(
                    f"The evaluator dynsnap has no setting {name!r}. "
                    f"{did_you_mean(name, _SETTINGS)}"
                )
        rules = _rules(settings)
        if rules and "champion" not in settings:
            raise PlanError(
                "There are rules, but no champion to judge by: set `champion` to an address such "
                'as "models:/NAME@champion".'
            )
        old = _champion(settings["champion"]) if "champion" in settings else None
        found = _predicted(dataset, model, predictions, settings.get("id"))
        log_predictions(found)
        assert found.truth is not None
        known = found.truth >= 0
        right = found.labels[known] == found.truth[known]
        metrics = {"dynsnap/accuracy": float(np.mean(right))}
        if old is not None:
            pair, verdict = _compared(old, found, rules)
            metrics |= pair
            mlflow.set_tag("dynsnap.champion", settings["champion"])
            if verdict is not None:
                mlflow.set_tag("dynsnap.verdict", verdict)
        mlflow.log_metrics(metrics)
        return EvaluationResult(metrics=metrics, artifacts={}, run_id=run_id)


def _rules(settings: dict[str, Any]) -> tuple[gate.Rule, ...]:
    found = gate.read_rules(settings["rules"]) if settings.get("rules") else ()
    for side in ("at_least", "at_most"):
        given = settings.get(side, ())
        texts = [given] if isinstance(given, str) else given
        found = (*found, *(gate.inline_rule(text, side=side) for text in texts))
    return tuple(found)


def _champion(address: str) -> Predictions:
    with fetched(address) as file:
        return predictions.read(file)


def _predicted(dataset: Any, model: Any, column: str | None, id_column: str | None) -> Predictions:
    """The model's answers to the data set, as predictions.

    Args:
        dataset: MLflow's data set.
        model: The model, None where the data set holds its answers.
        column: The column of the model's answers that has the labels.
        id_column: The column of the data that identifies inputs.
    """
    features = dataset.features_data
    if dataset.labels_data is None:
        raise PlanError("The evaluator dynsnap needs true classes: pass `targets`.")
    # A missing truth is none, and no class of its own.
    truth: list[Any] = [None if pd.isna(label) else str(label) for label in dataset.labels_data]
    if not any(truth):
        raise PlanError("The evaluator dynsnap needs true classes, and `targets` has none.")
    ids: Any = np.arange(len(truth))
    if id_column is not None:
        if not hasattr(features, "columns") or id_column not in features.columns:
            raise PlanError(f"The data has no column {id_column!r} to identify inputs by.")
        ids, features = features[id_column].to_numpy(), features.drop(columns=[id_column])
    answers = dataset.predictions_data if model is None else model.predict(features)
    if answers is None:
        raise PlanError("The evaluator dynsnap needs answers: pass a model, or `predictions`.")
    if column is not None:
        answers = answers[column]
    columns = [name for name in getattr(answers, "columns", ()) if str(name).startswith(_SCORE)]
    if columns:
        classes = [name.removeprefix(_SCORE) for name in columns]
        scores = answers[columns].to_numpy(float)
        unseen = sorted({*truth} - {*classes, None})
        scores = np.pad(scores, ((0, 0), (0, len(unseen))))
        # A model may choose its labels by a threshold of its own.
        labels = [str(label) for label in answers["label"]] if "label" in answers.columns else None
        return Predictions(
            ids=ids, classes=[*classes, *unseen], scores=scores, labels=labels, truth=truth
        )
    if hasattr(answers, "columns"):
        named = [name for name in ("label", "prediction") if name in answers.columns]
        if not named:
            raise PlanError(
                "The model answers with a table that has neither `label` nor `score:<class>`: "
                f"{', '.join(map(str, answers.columns))}. Name its column with `predictions`."
            )
        answers = answers[named[0]]
    labels = [str(label) for label in np.asarray(answers).reshape(-1)]
    classes = sorted({*labels, *truth} - {None})
    return Predictions(ids=ids, classes=classes, labels=labels, truth=truth)


def _compared(
    old: Predictions, found: Predictions, rules: tuple[gate.Rule, ...]
) -> tuple[dict[str, float], str | None]:
    """Metrics of the pair and the verdict; page and JSON are logged as artifacts."""
    names, verdict = ("champion", "candidate"), None
    if rules:
        verdict, made = gate.judge_pair(old, found, rules, names=names)
    else:
        made = comparison.compare(old, found, names=names)
    pair = {
        f"dynsnap/{name}": float(one.value)
        for name, one in made.pairs[0].metrics.items()
        if one.value is not None and np.isfinite(one.value)
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if verdict is not None:
            document = report.verdict_document(verdict, made)
            (place / "verdict.json").write_text(json.dumps(gate.to_json(verdict)), "utf-8")
        else:
            document = report.comparison_document(made)
        (place / "comparison.html").write_text(report.to_html(document), "utf-8")
        mlflow.log_artifacts(folder, str(Path(PREDICTIONS).parent))
    return pair, None if verdict is None else verdict.word
