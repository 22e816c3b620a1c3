"""A text network that goes on from a deployed one takes up the words that are frequent by now.

The texts of a new class have words of their own. A network that kept the vocabulary of the first
generation would never read them.
"""

import torch
from torch import nn

from dynsnap._types import Positions
from dynsnap.train._prepare import Encoded, Preparation, State
from dynsnap.train._text import Words


def renewed(
    prepare: Preparation, old: State, module: nn.Module, encoded: Encoded, rows: Positions
) -> State:
    """What a round prepares its inputs with that starts from a network which had `old`.

    Numbers are prepared as that network has learned to read them. A vocabulary is brought up to
    date, where the module has vectors of words to go with it.
    """
    if isinstance(prepare, Words) and _tables(module, prepare):
        return prepare.renew(old, encoded, rows)
    return old


def carried(
    prepare: Preparation, module: nn.Module, *, weights: State, old: State, other: State, new: State
) -> State:
    """Weights that were trained with one vocabulary, for a module that reads another one.

    Args:
        prepare: How inputs are prepared.
        module: The kind of network.
        weights: The weights.
        old: The preparation that they were trained with.
        other: Weights to take the vectors from of words that `old` does not have.
        new: The preparation to read with.
    """
    if not isinstance(prepare, Words):
        return weights
    places = torch.from_numpy(prepare.replaced(old, new))
    found = dict(weights)
    for name in _tables(module, prepare):
        if name not in weights or weights[name].shape != other[name].shape:
            return weights  # of another module, which is refused where they are loaded
        found[name] = weights[name].clone()
        found[name][places] = other[name][places].to(found[name].device)
    return found


def _tables(module: nn.Module, prepare: Words) -> list[str]:
    """The parameters of a module that hold one vector for each word, by all of their names.

    One that is tied to another layer has several. One that is computed of others has none.
    """
    tables = [
        part.weight
        for part in module.modules()
        if isinstance(part, nn.Embedding | nn.EmbeddingBag)
        and part.num_embeddings == prepare.size + prepare.buckets
    ]
    return [
        name
        for name, value in module.state_dict(keep_vars=True).items()
        if any(value is table for table in tables)
    ]
