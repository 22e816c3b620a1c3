"""Members on rows of their own, several at once: validation, and scores of finished rounds."""

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dynsnap.train.side_by_side._capture import captured
from dynsnap.train.side_by_side._network import Program, Settings, place_of

ROWS_AT_ONCE = 512


class Evaluation:
    """Places for members that are only looked at."""

    def __init__(
        self, module: nn.Module, rounds: int, settings: Settings, *, grouped: bool
    ) -> None:
        module = copy.deepcopy(module).eval()
        self._program = Program(module, rounds, settings, grouped=grouped)
        self._vector = self._program.layout.vector(module)
        self._buffers = [value.detach().clone() for value in module.buffers()]
        self.rounds = rounds
        self._fitted = settings.feed.room(rounds)
        device = self._fitted.device
        self._rows = torch.zeros(rounds, ROWS_AT_ONCE, dtype=torch.int64, device=device)
        self._scores = self._compute()
        self._replay = captured(self._step, [self._scores])

    def load(self, place: int, state: Sequence[Tensor], fitted: Tensor) -> None:
        """Put a member into a place: its tensors in the program's order, and what it fitted."""
        parameters = self._program.layout.views(self._vector)
        views = [place_of(value, place, self.rounds) for value in [*parameters, *self._buffers]]
        torch._foreach_copy_(views, list(state))
        self._fitted[place].copy_(fitted)

    def scores(self, rows: Tensor) -> Tensor:
        """Scores (members, rows, classes) of each member on rows of its own (members, rows)."""
        parts = []
        for start in range(0, rows.shape[1], ROWS_AT_ONCE):
            part = rows[:, start : start + ROWS_AT_ONCE]
            self._rows[: len(rows), : part.shape[1]].copy_(part)
            self._replay()
            parts.append(self._scores[: len(rows), : part.shape[1]].clone())
        return torch.cat(parts, dim=1)

    def _step(self) -> None:
        self._scores.copy_(self._compute())

    @torch.no_grad()
    def _compute(self) -> Tensor:
        scores: Tensor = self._program.scores(self._vector, self._buffers, self._fitted, self._rows)
        return scores


def padded(rows: Sequence[Tensor]) -> Tensor:
    """Rows of different numbers as one table; the shorter ones repeat their first."""
    longest = max(len(part) for part in rows)
    return torch.stack([torch.cat([part, part[:1].expand(longest - len(part))]) for part in rows])


def parts(count: int, size: int) -> list[range]:
    """0 to count - 1 in parts of at most `size`."""
    return [range(i * size, min(count, (i + 1) * size)) for i in range(math.ceil(count / size))]
