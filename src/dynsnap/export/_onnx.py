"""One ONNX model of a whole ensemble: members, combination, class names; checked, then written."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynsnap import __version__, _files
from dynsnap._types import AnyArray, Floats
from dynsnap.errors import DynSnapError, InputError, PlanError
from dynsnap.export import _check
from dynsnap.export._check import Checked, ExportError
from dynsnap.export._ensemble import ExportableEnsemble
from dynsnap.trainers import needed

_MOST_BYTES = (1 << 31) - 1  # of a protocol buffer, and so of a model in one file
_WIDEST = 1 << 20


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OnnxModel:
    """An ensemble as ONNX.

    Attributes:
        content: The model, as it is written to a file.
        input: The name of its input.
        dtype: The type of its input.
        shape: The shape of one input.
        checked: What it was compared on with the ensemble.
    """

    content: bytes
    input: str
    dtype: str
    shape: tuple[int, ...]
    checked: Checked


def save_onnx(
    ensemble: ExportableEnsemble, path: Path | str, *, inputs: AnyArray | None = None
) -> OnnxModel:
    """Write an ensemble as one ONNX model, if the model answers as the ensemble does.

    Args:
        ensemble: The ensemble.
        path: The file.
        inputs: Real inputs to compare both on, beside random ones.

    Raises:
        PlanError: A member has a part that ONNX has no operator for.
        ExportError: Labels differ, or scores by more than 1e-5. Nothing is written.
    """
    made = to_onnx(ensemble, inputs=inputs)
    with _files.replacing(Path(path)) as aside:
        aside.write_bytes(made.content)
    return made


def to_onnx(ensemble: ExportableEnsemble, *, inputs: AnyArray | None = None) -> OnnxModel:
    """An ensemble as one ONNX model that was compared with it; see `save_onnx`."""
    for library in ("onnx", "onnxruntime"):
        needed(library, "onnx")
    if inputs is not None and not len(inputs):
        raise InputError("There are no inputs to check the export on: the file has no rows.")
    if inputs is not None:
        ensemble.score(inputs[:1])  # inputs of another kind are refused before the long part
    if ensemble.backend == "torch":
        return _of_modules(ensemble, inputs)
    return _of_classifiers(ensemble, inputs)


def stacked_module(ensemble: ExportableEnsemble) -> Any:
    """All members as one `torch.nn.Module` that gives (members, batch, classes)."""
    modules = members_as_modules(ensemble)
    return needed("dynsnap.train", "torch").StackedModule(modules)


def members_as_modules(ensemble: ExportableEnsemble) -> list[Any]:
    """The members as plain `torch.nn.Module`s: from inputs as `predict` takes them to scores."""
    if ensemble.backend != "torch":
        raise PlanError(
            "The members are no torch modules: they come from scikit-learn or a boosting library."
        )
    train = needed("dynsnap.train", "torch")
    found: list[Any] = train.member_modules(
        ensemble.learners, model=ensemble.model, shape=ensemble.shape
    )
    return found


# --- torch ----------------------------------------------------------------------------------


def _of_modules(ensemble: ExportableEnsemble, inputs: AnyArray | None) -> OnnxModel:
    needed("onnxscript", "onnx")
    modules = members_as_modules(ensemble)
    first = modules[0]
    size = sum(value.nbytes for one in modules for value in one.state_dict().values())
    _check_size(size)
    parts = []
    for exported in needed("dynsnap.train", "torch").export_modules(modules):
        weights = {name: value.numpy() for name, value in exported.weights.items()}
        parts.append((exported.model, "scores", weights))
    dtype = np.uint8 if str(first.dtype) == "torch.uint8" else np.float32
    random = _check.random_inputs(first.shape, dtype, seed=0)
    if not ensemble.names and dtype == np.float32:
        random = _standardised_back(random, first)
    return _assembled(
        ensemble,
        parts,
        name=first.takes,
        dtype=dtype,
        shape=first.shape,
        random=random,
        given=inputs,
    )


def _standardised_back(random: AnyArray, module: Any) -> AnyArray:
    """Random numbers of the size that each feature has."""
    state = dict(module.named_buffers(recurse=False))
    if "prepared_deviation" not in state:
        return random
    made = random * state["prepared_deviation"].numpy() + state["prepared_mean"].numpy()
    return np.asarray(made, dtype=np.float32)


# --- boosted trees and scikit-learn -----------------------------------------------------------


def _of_classifiers(ensemble: ExportableEnsemble, inputs: AnyArray | None) -> OnnxModel:
    for library in ("skl2onnx", "onnxmltools"):
        needed(library, "onnx")
    from dynsnap.boost import library_model
    from dynsnap.export import _graph, _members

    found = [
        library_model(one, classes=len(columns), trust=ensemble.trust)
        for one, columns in zip(ensemble.learners, ensemble.columns, strict=True)
    ]
    features = found[0].features
    if features is None or not 0 < features <= _WIDEST:
        raise PlanError(
            f"The members do not state how many features they take ({features}), as classifiers "
            "of texts: these cannot be exported. Serve the ensemble with `predict`."
        )
    shape = ensemble.shape or (features,)
    missing = ensemble.missing and _scores_missing(ensemble, shape)
    failure: DynSnapError | None = None
    for dtype in _members.dtypes(found[0].kind):
        try:
            models = [
                _members.convert(one, number, dtype=dtype, features=features)
                for number, one in enumerate(found)
            ]
            random = _check.random_inputs((features,), dtype, seed=0, missing=missing)
            random = _check.near_thresholds(random, _graph.thresholds(models, features), seed=1)
            return _assembled(
                ensemble,
                [(model, _members.SCORES, {}) for model in models],
                name="features",
                dtype=dtype,
                shape=shape,
                random=random.reshape(len(random), *shape),
                given=inputs,
                seen=[one.seen.tolist() for one in found],
                missing=found[0].missing,
            )
        except (PlanError, ExportError) as error:
            # Trees of scikit-learn compare in single precision: double is one too many.
            failure = error
    assert failure is not None
    raise failure


def _scores_missing(ensemble: ExportableEnsemble, shape: tuple[int, ...]) -> bool:
    """Whether members do score inputs with missing values: some do only if they met any."""
    try:
        ensemble.score(np.full((1, *shape), np.nan))
    except DynSnapError:
        return False
    return True


# --- both -----------------------------------------------------------------------------------


def _assembled(
    ensemble: ExportableEnsemble,
    parts: Sequence[tuple[Any, str, Any]],
    *,
    name: str,
    dtype: Any,
    shape: tuple[int, ...],
    random: AnyArray,
    given: AnyArray | None,
    seen: Sequence[Sequence[int]] | None = None,
    missing: float = float("nan"),
) -> OnnxModel:
    from dynsnap.export import _graph

    graph = _graph.GraphBuilder()
    feed = name
    if seen is not None and len(shape) > 1:  # images, laid out flat
        feed = graph.op("Flatten", feed, axis=1)
    if not np.isnan(missing):
        lacks = graph.op("Equal", feed, graph.constant(missing, dtype))
        feed = graph.op("Where", lacks, graph.constant(np.nan, dtype), feed)
    scores = []
    for number, (model, output, weights) in enumerate(parts):
        own = graph.member(model, number, feed=feed, output=output, weights=weights)
        # Scores of members are of single precision, whatever a converter computes in.
        own = graph.cast(own, 1)
        columns: Sequence[int] = ensemble.columns[number]
        if seen is not None:
            columns = [columns[at] for at in seen[number]]
        scores.append(_graph.widen(graph, own, columns, len(ensemble.classes)))
    combined = _graph.combination(
        graph,
        scores,
        classes=len(ensemble.classes),
        how=ensemble.combination,
        weights=ensemble.accuracy,
        known=ensemble.known,
    )
    model = _graph.finished(
        graph,
        combined,
        classes=ensemble.classes,
        feed=_graph.input_of(name, dtype, shape),
        metadata=_metadata(ensemble),
    )
    _check_size(model.ByteSize())
    content = _graph.checked(model)
    try:
        run = _session(content, name)
    except Exception as error:  # onnxruntime has many kinds of its own
        raise ExportError(
            f"onnxruntime does not load the graph, so nothing was written: {str(error)[:300]}"
        ) from error
    found = _check.check(run, ensemble, random=random, given=given, dtype=dtype)
    return OnnxModel(
        content=content, input=name, dtype=str(np.dtype(dtype)), shape=shape, checked=found
    )


def _metadata(ensemble: ExportableEnsemble) -> dict[str, str]:
    found: dict[str, Any] = {
        "classes": list(ensemble.classes),
        "combination": ensemble.combination,
        "members": len(ensemble.learners),
        "version": __version__,
    }
    if ensemble.names:
        found["columns"] = list(ensemble.names)
    return {
        f"dynsnap.{key}": value if isinstance(value, str) else json.dumps(value)
        for key, value in found.items()
    }


def _session(content: bytes, name: str) -> Callable[[AnyArray], tuple[AnyArray, Floats]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(inputs: AnyArray) -> tuple[AnyArray, Floats]:
        labels, scores = session.run(["label", "scores"], {name: np.ascontiguousarray(inputs)})
        return np.asarray(labels, dtype=object), scores

    return run


def _check_size(size: int) -> None:
    if size > _MOST_BYTES:
        raise PlanError(
            f"The members have {size / 1e9:.1f} GB of weights, and one ONNX file holds at most "
            "2.1 GB. Export fewer members, or serve the ensemble with `predict`."
        )
