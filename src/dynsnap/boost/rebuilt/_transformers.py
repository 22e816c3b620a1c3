"""Steps before a classifier: scaling, choosing and projecting features, counting words."""

from typing import Any

import numpy as np

from dynsnap.boost._structure import invalid, shown, unchecked
from dynsnap.boost.rebuilt._columns import check_output
from dynsnap.boost.rebuilt._facts import (
    Checker,
    Facts,
    attribute,
    chosen,
    numbers,
    whole,
    wrong,
)

# Regular expressions can take for ever, so only the one that scikit-learn comes with is known.
_WORDS = r"(?u)\b\w\w+\b"
_LONGEST = 32  # words or characters in one term


def _same(features: int) -> Facts:
    return Facts("transformer", features, features, width=features)


def scaler(part: Any, _checker: Checker) -> Facts:
    """A scaler: one number for each feature, of whatever it has."""
    features = whole(part, "n_features_in_", 1)
    for name in (
        "mean_",
        "var_",
        "scale_",
        "min_",
        "center_",
        "max_abs_",
        "data_min_",
        "data_max_",
    ):
        if vars(part).get(name) is not None:
            numbers(part, name, features)
    check_output(part)
    return _same(features)


def stateless(part: Any, _checker: Checker) -> Facts:
    """A step that learns nothing."""
    return _same(whole(part, "n_features_in_", 1))


def power(part: Any, checker: Checker) -> Facts:
    """A `PowerTransformer`."""
    features = whole(part, "n_features_in_", 1)
    numbers(part, "lambdas_", features)
    chosen(part, "method", ["yeo-johnson", "box-cox"])
    if "_scaler" in vars(part):
        checker.all([part._scaler], "transformer", inputs=features, outputs=features)
    return _same(features)


def quantiles(part: Any, _checker: Checker) -> Facts:
    """A `QuantileTransformer`."""
    features = whole(part, "n_features_in_", 1)
    rows = len(numbers(part, "references_", None))
    numbers(part, "quantiles_", rows, features)
    chosen(part, "output_distribution", ["uniform", "normal"])
    return _same(features)


def components(part: Any, _checker: Checker) -> Facts:
    """A `PCA` or `TruncatedSVD`."""
    features = whole(part, "n_features_in_", 1)
    found = numbers(part, "components_", None, features)
    if len(found) > features:
        raise invalid(f"{len(found)} directions are too many for {features} features")
    if "mean_" in vars(part):
        numbers(part, "mean_", features)
    if "explained_variance_" in vars(part):
        numbers(part, "explained_variance_", len(found))
    return Facts("transformer", features, len(found), width=features + len(found))


def selection(part: Any, _checker: Checker) -> Facts:
    """A choice of features by a score of each."""
    features = whole(part, "n_features_in_", 1)
    for name in ("scores_", "pvalues_", "variances_"):
        if vars(part).get(name) is not None:
            numbers(part, name, features)
    kept = np.count_nonzero(part.get_support())
    return Facts("transformer", features, int(kept), width=int(kept))


def union(part: Any, checker: Checker) -> Facts:
    """A `FeatureUnion`."""
    pairs = attribute(part, "transformer_list")
    if not isinstance(pairs, list) or not pairs:
        raise wrong(part, "transformer_list")
    steps = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise wrong(part, "transformer_list")
        steps.append(pair[1])
    weights = vars(part).get("transformer_weights")
    if weights is not None:
        raise unchecked("a FeatureUnion with weights")
    work = checker.all(steps, "transformer", inputs=None, outputs=None)
    found = [checker.facts(step) for step in steps]
    inputs, outputs = {facts.inputs for facts in found}, [facts.outputs for facts in found]
    if len(inputs) != 1:
        raise invalid("the steps of a FeatureUnion take different numbers of features")
    total = sum(filter(None, outputs)) if None not in outputs else None
    # What all of them give is there twice: in parts, and side by side.
    own = 2 * sum(facts.outputs or 0 for facts in found if facts.width)
    return Facts("transformer", inputs.pop(), total, work, checker.widest(steps) + own)


def words(part: Any, _checker: Checker) -> Facts:
    """A `CountVectorizer`: its numbers of words become indices of a sparse matrix."""
    _check_analyzer(part)
    vocabulary = attribute(part, "vocabulary_")
    if not isinstance(vocabulary, dict) or not vocabulary:
        raise wrong(part, "vocabulary_")
    places = list(vocabulary.values())
    if not all(type(place) is int for place in places) or not all(
        isinstance(word, str) for word in vocabulary
    ):
        raise wrong(part, "vocabulary_")
    if sorted(places) != list(range(len(places))):
        raise invalid("the words of a text model are not numbered one by one")
    return Facts("transformer", None, len(places))


def weighted_words(part: Any, checker: Checker) -> Facts:
    """A `TfidfVectorizer`."""
    facts = words(part, checker)
    checker.all(
        [attribute(part, "_tfidf")], "transformer", inputs=facts.outputs, outputs=facts.outputs
    )
    return facts


def hashed_words(part: Any, _checker: Checker) -> Facts:
    """A `HashingVectorizer`."""
    _check_analyzer(part)
    columns = whole(part, "n_features", 1)
    if columns >= 2**31:
        raise wrong(part, "n_features")
    return Facts("transformer", None, columns)


def weights(part: Any, _checker: Checker) -> Facts:
    """A `TfidfTransformer`."""
    features = whole(part, "n_features_in_", 1)
    if "idf_" in vars(part):
        numbers(part, "idf_", features)
    return _same(features)


def _check_analyzer(part: Any) -> None:
    chosen(part, "input", ["content"])
    for name in ("preprocessor", "tokenizer"):
        chosen(part, name, [None])
    chosen(part, "analyzer", ["word", "char", "char_wb"])
    chosen(part, "token_pattern", [_WORDS])
    chosen(part, "strip_accents", [None, "ascii", "unicode"])
    chosen(part, "encoding", ["utf-8", "latin-1", "ascii"])
    stop = attribute(part, "stop_words")
    if isinstance(stop, list | set | tuple):
        if not all(isinstance(word, str) for word in stop):
            raise wrong(part, "stop_words")
    else:
        chosen(part, "stop_words", [None, "english"])
    span = attribute(part, "ngram_range")
    if (
        not isinstance(span, tuple | list)
        or len(span) != 2
        or not all(type(size) is int for size in span)
        or not 1 <= span[0] <= span[1] <= _LONGEST
    ):
        raise unchecked(f"terms of {shown(span)} words")
