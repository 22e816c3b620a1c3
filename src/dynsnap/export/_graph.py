"""ONNX graphs: members side by side behind one input, and their combination as operators."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dynsnap._types import Accuracies, AnyArray, Flags, Positions
from dynsnap.ensemble import Combination, known_patterns, member_shares

OPSET = {"": 20, "ai.onnx.ml": 3}
IR_VERSION = 10


class GraphBuilder:
    """A graph in the making: operators in order, and constants."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0

    def op(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add an operator with one output; the output's name."""
        self._count += 1
        output = name or f"combine.{kind.lower()}.{self._count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, values: Any, dtype: Any) -> str:
        """The name of a constant; equal ones are stored once."""
        array = np.asarray(values, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if array.dtype == object or key not in self._constants:
            name = f"combine.constant.{len(self.initializers)}"
            self.initializers.append(numpy_helper.from_array(array, name))
            self._constants[key] = name
            return name
        return self._constants[key]

    def cast(self, value: str, to: int) -> str:
        return self.op("Cast", value, to=to)

    def member(
        self, model: Any, number: int, *, feed: str, output: str, weights: Mapping[str, Any]
    ) -> str:
        """Add a member's own graph, its names behind a prefix; the name of its scores.

        Args:
            model: The member as an ONNX model with one input.
            number: Which member it is.
            feed: What goes into it.
            output: Which of its outputs has the scores.
            weights: Arrays that take the places of initializers, by name.
        """
        graph = model.graph
        stored = {one.name for one in graph.initializer}
        (own,) = [one.name for one in graph.input if one.name not in stored]
        names = {own: feed, "": ""}

        def renamed(name: str) -> str:
            return names.setdefault(name, f"member{number}.{name}")

        nodes = _needed(graph.node, output)
        used = {name for node in nodes for name in node.input}
        for tensor in graph.initializer:
            if tensor.name not in used:
                continue
            if tensor.name in weights:
                self.initializers.append(
                    numpy_helper.from_array(weights[tensor.name], renamed(tensor.name))
                )
            else:
                copied = type(tensor)()
                copied.CopyFrom(tensor)
                copied.name = renamed(tensor.name)
                self.initializers.append(copied)
        for node in nodes:
            copied = type(node)()
            copied.CopyFrom(node)
            copied.name = f"member{number}.{node.name or node.op_type}"
            copied.ClearField("metadata_props")  # where a layer was written, on whose machine
            copied.doc_string = ""
            copied.input[:] = [renamed(name) for name in node.input]
            copied.output[:] = [renamed(name) for name in node.output]
            self.nodes.append(copied)
        return renamed(output)


def _needed(nodes: Sequence[Any], output: str) -> list[Any]:
    """The operators that an output depends on, in their order."""
    wanted, found = {output}, []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted |= set(node.input)
            found.append(node)
    return found[::-1]


def widen(graph: GraphBuilder, scores: str, columns: Sequence[int], classes: int) -> str:
    """Scores of the classes that a member has columns for, as scores of all: 0 elsewhere."""
    if list(columns) == list(range(classes)):
        return scores
    padded = graph.op(
        "Pad", scores, graph.constant([0, 0, 0, 1], np.int64), graph.constant(0, np.float32)
    )
    places = np.full(classes, len(columns))
    places[list(columns)] = np.arange(len(columns))
    return graph.op("Gather", padded, graph.constant(places, np.int64), axis=1)


def combination(
    graph: GraphBuilder,
    members: Sequence[str],
    *,
    classes: int,
    how: Combination,
    weights: Accuracies,
    known: Flags | None,
) -> str:
    """Add `dynsnap.ensemble.combine` in double precision; the name of the combined scores.

    Members are added one after another, as `combine` adds them, so that two classes with equally
    many votes are as equal here as there.
    """
    shares = member_shares(weights, how, len(members))
    patterns, pattern_of = known_patterns(known, len(members), classes)
    sums: list[str | None] = [None] * len(patterns)
    for scores, share, which in zip(members, shares, pattern_of.tolist(), strict=True):
        rows = graph.cast(scores, TensorProto.DOUBLE)
        if not patterns[which].all():
            rows = _leave_out(graph, rows, patterns[which])
        if how.endswith("majority"):
            best = graph.op("ArgMax", rows, axis=1, keepdims=1)
            places = graph.constant([range(classes)], np.int64)
            rows = graph.cast(graph.op("Equal", best, places), TensorProto.DOUBLE)
        rows = graph.op("Mul", rows, graph.constant(share, np.float64))
        before = sums[which]
        sums[which] = rows if before is None else graph.op("Add", before, rows)
    found = [name for name in sums if name is not None]
    combined = found[0] if len(found) == 1 else _pooled(graph, found, patterns)
    return graph.op("Div", combined, _row_sum(graph, combined))


def _row_sum(graph: GraphBuilder, rows: str) -> str:
    return graph.op("ReduceSum", rows, graph.constant([1], np.int64), keepdims=1)


def _flags(graph: GraphBuilder, known: Flags) -> str:
    return graph.constant(known[None].astype(float), np.float64)


def _leave_out(graph: GraphBuilder, rows: str, known: Flags) -> str:
    mask = _flags(graph, known)
    kept = graph.op("Mul", rows, mask)
    some = graph.op("Greater", _row_sum(graph, kept), graph.constant(0, np.float64))
    none = graph.cast(graph.op("Not", some), TensorProto.DOUBLE)
    kept = graph.op("Add", kept, graph.op("Mul", none, mask))
    return graph.op("Div", kept, _row_sum(graph, kept))


def _pooled(graph: GraphBuilder, sums: Sequence[str], patterns: Flags) -> str:
    one, zero = graph.constant(1, np.float64), graph.constant(0, np.float64)
    weights = [_row_sum(graph, rows) for rows in sums]
    masks = [_flags(graph, known) for known in patterns]
    asked = _added(graph, (graph.op("Mul", w, m) for w, m in zip(weights, masks, strict=True)))
    votes = _added(graph, (graph.op("Mul", s, m) for s, m in zip(sums, masks, strict=True)))
    some = graph.op("Greater", asked, zero)
    likely = graph.op("Div", votes, graph.op("Where", some, asked, one))
    parts = []
    for rows, known, weight in zip(sums, patterns, weights, strict=True):
        unknown = graph.op("Mul", likely, _flags(graph, ~known))
        unknown = graph.op("Div", unknown, graph.op("Max", _row_sum(graph, unknown), one))
        rest = graph.op("Sub", one, _row_sum(graph, unknown))
        filled = graph.op("Mul", weight, unknown)
        parts.append(graph.op("Add", graph.op("Mul", rows, rest), filled))
    return _added(graph, iter(parts))


def _added(graph: GraphBuilder, parts: Iterator[str]) -> str:
    total = next(parts)
    for part in parts:
        total = graph.op("Add", total, part)
    return total


def finished(
    graph: GraphBuilder,
    combined: str,
    *,
    classes: Sequence[str],
    feed: Any,
    metadata: Mapping[str, str],
) -> Any:
    """The whole model, with `label` and `scores` as outputs."""
    best = graph.op("ArgMax", combined, axis=1, keepdims=0)
    names = graph.constant(np.array(classes, dtype=object), object)
    graph.op("Gather", names, best, name="label", axis=0)
    graph.op("Cast", combined, name="scores", to=TensorProto.FLOAT)
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.STRING, ["batch"]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", len(classes)]),
    ]
    made = helper.make_graph(graph.nodes, "dynsnap", [feed], outputs, graph.initializers)
    imports = [helper.make_opsetid(domain, version) for domain, version in OPSET.items()]
    model = helper.make_model(
        made, opset_imports=imports, ir_version=IR_VERSION, producer_name="dynsnap"
    )
    helper.set_model_props(model, dict(metadata))
    return model


def input_of(name: str, dtype: AnyArray | Any, shape: Sequence[int]) -> Any:
    """The graph's one input."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, ["batch", *shape])


def checked(model: Any) -> bytes:
    """The model as bytes, if ONNX accepts it."""
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def thresholds(models: Sequence[Any], features: int) -> list[Positions | AnyArray]:
    """For each feature the values that trees compare it with."""
    found: list[set[float]] = [set() for _ in range(features)]
    for model in models:
        for node in model.graph.node:
            facts = {one.name: one for one in node.attribute}
            if not node.op_type.startswith("TreeEnsemble"):
                continue
            places = facts["nodes_featureids"].ints
            if "nodes_values" in facts:
                values = facts["nodes_values"].floats
            else:
                values = numpy_helper.to_array(facts["nodes_values_as_tensor"].t).tolist()
            for mode, place, value in zip(
                facts["nodes_modes"].strings, places, values, strict=True
            ):
                if mode != b"LEAF" and place < features:
                    found[place].add(value)
    return [np.array(sorted(values)) for values in found]
