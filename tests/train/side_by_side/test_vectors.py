"""Sums of word vectors: many tables at once, by torch and by the GPU's kernels alike."""

import os

import pytest
import torch

from dynsnap.train.side_by_side._vectors import _spread, sum_vectors

# Read when Triton is imported. No other test needs a GPU.
os.environ["TRITON_INTERPRET"] = "1"

ROUNDS, TEXTS, WORDS = 3, 4, 7


def made(longest, width):
    """Tokens with gaps between them and texts that are empty, and tables."""
    torch.manual_seed(0)
    tokens = torch.randint(0, WORDS, (ROUNDS * TEXTS, longest))
    tokens *= torch.arange(longest) < torch.linspace(0, longest, len(tokens)).long()[:, None]
    return tokens, torch.randn(ROUNDS * WORDS, width)


def slowly(tokens, vectors):
    tables = vectors.unflatten(0, (ROUNDS, -1))
    return torch.stack(
        [
            sum((tables[row // TEXTS][token] for token in text if token), vectors.new_zeros(()))
            + vectors.new_zeros(vectors.shape[1])
            for row, text in enumerate(tokens.tolist())
        ]
    )


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_sums_and_their_gradient_are_those_of_each_table_alone(kind):
    tokens, vectors = made(9, 5)
    vectors = vectors.double().requires_grad_()
    expected = slowly(tokens, vectors)
    found = sum_vectors(tokens.to(kind), vectors, ROUNDS)
    torch.testing.assert_close(found, expected)
    slopes = [torch.autograd.grad(part.square().sum(), vectors)[0] for part in (found, expected)]
    torch.testing.assert_close(*slopes)


@pytest.mark.parametrize(("longest", "width"), [(9, 5), (8, 4), (1, 50)])
def test_kernels_compute_sums_and_their_gradient(longest, width, monkeypatch):
    kernels = pytest.importorskip(
        "dynsnap.train.side_by_side._vectors_kernels", reason="Triton is only needed for GPUs."
    )
    monkeypatch.setattr(kernels, "TOKENS", 4)  # several blocks, the last not full, some empty
    tokens, vectors = made(longest, width)
    found = kernels.sum_vectors(tokens, vectors, ROUNDS)
    torch.testing.assert_close(found, sum_vectors(tokens, vectors, ROUNDS))
    gradient = torch.randn_like(found)
    spread = kernels.spread(tokens, gradient, len(vectors), ROUNDS)
    torch.testing.assert_close(spread, _spread(tokens, gradient, len(vectors), ROUNDS))
