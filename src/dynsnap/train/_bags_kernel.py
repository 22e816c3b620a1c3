"""Texts as bags of words, counted and trained in compiled loops. Import this late."""

from typing import Any, NamedTuple

import numpy as np

from dynsnap._compiled import compiled, full_width, part
from dynsnap._types import AnyArray


class BagArrays(NamedTuple):
    """The distinct tokens of each text, with how often each occurs in it.

    `starts` states where each text begins in the other two, and where the last ends.
    """

    starts: AnyArray
    tokens: AnyArray
    counts: AnyArray


@compiled
def count(tokens: AnyArray, starts: AnyArray, seen: AnyArray, bags: BagArrays) -> int:
    """Fill the bags of texts, tokens in the order of their first use; how many entries they have.

    Args:
        tokens: The tokens of all texts.
        starts: Where each text begins.
        seen: -1 for every token that there is.
        bags: Room for as many entries as there are tokens.
    """
    n = 0
    for text in range(len(starts) - 1):
        first = n
        bags.starts[text] = n
        for i in range(starts[text], starts[text + 1]):
            token = tokens[i]
            place = seen[token]
            if place >= first:
                bags.counts[place] += np.float32(1)
            else:
                seen[token] = n
                bags.tokens[n] = token
                bags.counts[n] = np.float32(1)
                n += 1
    bags.starts[len(starts) - 1] = n
    return n


@compiled
def measure(bags: BagArrays, lengths: AnyArray) -> None:
    """Count how many known tokens each text has; token 0 is unknown."""
    for text in range(len(lengths)):
        lengths[text] = 0
        for i in range(bags.starts[text], bags.starts[text + 1]):
            if bags.tokens[i]:
                lengths[text] += bags.counts[i]


LANES = 16


class Parameters(NamedTuple):
    """Weights of one network, or numbers that belong to each of them."""

    vectors: AnyArray  # (words, padded width)
    weight: AnyArray  # (classes, padded width)
    bias: AnyArray  # (1, classes)


class Scratch(NamedTuple):
    """Where numbers of one text lie for a moment; nothing is allocated on the way."""

    mean: AnyArray  # (padded width,)
    back: AnyArray  # (padded width,)
    scores: AnyArray  # (classes,)
    slope: AnyArray  # (classes,)
    cool: AnyArray  # (classes,)
    turned: AnyArray  # (padded width, classes)


class KernelTargets(NamedTuple):
    """What texts are taught beside their labels; targets of length 0 for nothing."""

    targets: AnyArray  # (texts, classes)
    weights: AnyArray  # (texts,)
    temperature: float


class Rates(NamedTuple):
    """Settings of Adam."""

    rate: float
    decay: float
    decay2: float
    eps: float


@part
def _mean(text: int, bags: BagArrays, lengths: AnyArray, vectors: AnyArray, mean: AnyArray) -> None:
    full_width()
    wide = vectors.shape[1]
    for k in range(wide):
        mean[k] = 0
    if lengths[text] == 0:
        return
    for i in range(bags.starts[text], bags.starts[text + 1]):
        token = bags.tokens[i]
        if token:
            times = bags.counts[i]
            for k in range(wide):
                mean[k] += times * vectors[token, k]
    share = np.float32(1) / lengths[text]
    for k in range(wide):
        mean[k] *= share


@compiled
def means(
    rows: AnyArray,
    bags: BagArrays,
    lengths: AnyArray,
    vectors: AnyArray,
    mean: AnyArray,
    out: AnyArray,
) -> None:
    """The mean vector of each of these texts; zeros for one without a known token."""
    for row in range(len(rows)):
        _mean(rows[row], bags, lengths, vectors, mean)
        for k in range(vectors.shape[1]):
            out[row, k] = mean[k]


@part
def _score(weights: Parameters, room: Scratch) -> float:
    """The scores of one text; returns the highest."""
    full_width()
    scores, classes = room.scores, len(room.scores)
    for c in range(classes):
        scores[c] = weights.bias[0, c]
    for k in range(len(room.mean)):
        value = room.mean[k]
        for c in range(classes):
            scores[c] += value * room.turned[k, c]
    top: float = scores[0]
    for c in range(classes):
        top = max(top, scores[c])
    return top


@part
def _slope(label: int, top: float, room: Scratch, batch: float) -> float:
    """The slope of the mean cross-entropy at the scores of one text: softmax less the truth."""
    full_width()
    scores, slope, classes = room.scores, room.slope, len(room.slope)
    loss = float(top - scores[label])
    total = np.float32(0)
    for c in range(classes):
        slope[c] = np.exp(scores[c] - top)
        total += slope[c]
    share = np.float32(1) / (total * batch)
    for c in range(classes):
        slope[c] *= share
    slope[label] -= np.float32(1) / batch
    return loss + float(np.log(float(total)))


@part
def _cool(targets: AnyArray, room: Scratch, batch: float, heat: float) -> float:
    """The slope of the mean cross-entropy with a teacher's scores, at a temperature, for one text.

    Softmax less the targets, times the temperature, as in `soft_slopes`; and the loss. Classes with
    a target below zero, which the teacher does not know, are left out of both.
    """
    full_width()
    scores, cool, classes = room.scores, room.cool, len(room.cool)
    # Beside the score of an unknown class, those of all known ones may vanish.
    top = np.float32(-np.inf)
    for c in range(classes):
        if targets[c] >= 0:
            top = max(top, scores[c])
    total, loss = np.float32(0), 0.0
    for c in range(classes):
        down = (scores[c] - top) / heat
        target = max(targets[c], np.float32(0))
        loss -= float(target * down)
        cool[c] = np.exp(down) if targets[c] >= 0 else np.float32(0)
        total += cool[c]
    for c in range(classes):
        target = max(targets[c], np.float32(0))
        cool[c] = (cool[c] / total - target) * (heat / batch)
    return (loss + float(np.log(float(total)))) * float(heat) * float(heat)


@part
def _backward(weights: Parameters, gradient: Parameters, room: Scratch) -> None:
    """Add what one text asks for to the gradients, but for those of its vectors."""
    full_width()
    wide = len(room.back)
    for k in range(wide):
        room.back[k] = 0
    for c in range(len(room.slope)):
        z = room.slope[c]
        gradient.bias[0, c] += z
        for k in range(wide):
            room.back[k] += z * weights.weight[c, k]
            gradient.weight[c, k] += z * room.mean[k]


@part
def _spread(
    text: int, bags: BagArrays, length: float, slopes: AnyArray, touched: AnyArray, back: AnyArray
) -> None:
    """Add what one text asks for to the gradients of its vectors."""
    full_width()
    wide = len(back)
    share = np.float32(1) / length
    for k in range(wide):
        back[k] *= share
    for i in range(bags.starts[text], bags.starts[text + 1]):
        token = bags.tokens[i]
        if token:
            touched[token] = 1
            times = bags.counts[i]
            for k in range(wide):
                slopes[token, k] += times * back[k]


@part
def _move(
    row: int,
    values: AnyArray,
    slopes: AnyArray,
    first: AnyArray,
    second: AnyArray,
    moves: Any,
) -> None:
    """A step of Adam for one row of numbers; its gradient is zero again after it."""
    full_width()
    rate, root, eps, decay, rest, decay2, rest2 = moves
    for k in range(values.shape[1]):
        g = slopes[row, k]
        m = decay * first[row, k] + rest * g
        v = decay2 * second[row, k] + rest2 * (g * g)
        first[row, k] = m
        second[row, k] = v
        values[row, k] -= rate * m / (np.sqrt(v) * root + eps)
        slopes[row, k] = 0


@part
def _drift(row: int, values: AnyArray, first: AnyArray, second: AnyArray, moves: Any) -> None:
    """The same without a gradient: moments fade, and what they were goes on moving."""
    full_width()
    rate, root, eps, decay, _, decay2, _ = moves
    for k in range(values.shape[1]):
        m = decay * first[row, k]
        v = decay2 * second[row, k]
        first[row, k] = m
        second[row, k] = v
        values[row, k] -= rate * m / (np.sqrt(v) * root + eps)


@part
def _adam(
    weights: Parameters,
    gradient: Parameters,
    first: Parameters,
    second: Parameters,
    touched: AnyArray,
    taken: int,
    rates: Rates,
) -> None:
    moves = (
        np.float32(rates.rate / (1 - rates.decay**taken)),
        np.float32(1 / np.sqrt(1 - rates.decay2**taken)),
        np.float32(rates.eps),
        np.float32(rates.decay),
        np.float32(1 - rates.decay),
        np.float32(rates.decay2),
        np.float32(1 - rates.decay2),
    )
    for token in range(len(touched)):
        # A word that never had a gradient has no moments either, and stays where it is.
        if touched[token] == 1:
            touched[token] = 2
            _move(token, weights.vectors, gradient.vectors, first.vectors, second.vectors, moves)
        elif touched[token]:
            _drift(token, weights.vectors, first.vectors, second.vectors, moves)
    _move(0, weights.bias, gradient.bias, first.bias, second.bias, moves)
    for c in range(len(weights.weight)):
        _move(c, weights.weight, gradient.weight, first.weight, second.weight, moves)


@compiled
def train(
    order: AnyArray,
    bags: BagArrays,
    lengths: AnyArray,
    labels: AnyArray,
    masks: AnyArray,
    weights: Parameters,
    gradient: Parameters,
    first: Parameters,
    second: Parameters,
    touched: AnyArray,
    taken: int,
    rates: Rates,
    room: Scratch,
    taught_by: KernelTargets,
) -> float:
    """Steps of one round over batches of texts; the summed loss.

    Args:
        order: The texts of each step, (steps, batch).
        bags: All texts.
        lengths: Known tokens of each text.
        labels: The class of each text.
        masks: What dropout leaves of the mean vectors (steps, batch, padded width), or of length 0.
        weights: The network.
        gradient: Zeros, and zeros again afterwards.
        first: Adam's first moments.
        second: Its second moments.
        touched: For each word whether it has ever had a gradient: 2 if so.
        taken: Steps that Adam has taken before.
        rates: Its settings.
        room: Memory for the numbers of one text.
        taught_by: What the texts are taught beside their labels.
    """
    steps, batch = order.shape
    classes, wide = weights.weight.shape
    size = np.float32(batch)
    heat = np.float32(taught_by.temperature)
    loss = 0.0
    for step in range(steps):
        for c in range(classes):
            for k in range(wide):
                room.turned[k, c] = weights.weight[c, k]
        for row in range(batch):
            text = order[step, row]
            _mean(text, bags, lengths, weights.vectors, room.mean)
            if len(masks):
                for k in range(wide):
                    room.mean[k] *= masks[step, row, k]
            top = _score(weights, room)
            labelled = _slope(labels[text], top, room, size)
            if len(taught_by.targets) and taught_by.weights[text] > 0:
                weight = taught_by.weights[text]
                taught = _cool(taught_by.targets[text], room, size, heat)
                for c in range(classes):
                    room.slope[c] = weight * room.cool[c] + (1 - weight) * room.slope[c]
                labelled = weight * taught + (1 - weight) * labelled
            loss += labelled
            _backward(weights, gradient, room)
            if len(masks):
                for k in range(wide):
                    room.back[k] *= masks[step, row, k]
            if lengths[text]:
                _spread(text, bags, lengths[text], gradient.vectors, touched, room.back)
        _adam(weights, gradient, first, second, touched, taken + step + 1, rates)
    return loss
