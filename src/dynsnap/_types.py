"""The arrays this library speaks in: the order of the axes is written here and nowhere guessed."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Labels: TypeAlias = npt.NDArray[np.integer]  # (inputs,); positions in the tuple of class names
Scores: TypeAlias = npt.NDArray[np.floating]  # (inputs, classes); each row sums to one
MemberScores: TypeAlias = npt.NDArray[np.floating]  # (members, inputs, classes)
Accuracies: TypeAlias = npt.NDArray[np.floating]  # (members,); measured on validation rows
Positions: TypeAlias = npt.NDArray[np.intp]  # indices into any of the axes above
Flags: TypeAlias = npt.NDArray[np.bool_]  # (inputs,)
Floats: TypeAlias = npt.NDArray[np.float64]
AnyArray: TypeAlias = npt.NDArray[Any]
