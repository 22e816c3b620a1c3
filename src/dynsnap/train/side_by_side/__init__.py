"""Many rounds at once on one GPU.

`_group` makes one network of several copies of a module, out of the layers in `_layers` and
`_word_layers` and the residual `_block`, which compute by `_convolution` and `_vectors`: kernels of
our own on a GPU, torch elsewhere. A module that cannot be grouped gets its `_fast_layers`. A
`_feed` gathers batches, of `_images` or `_tokens`; `_network` is one step of all rounds as tensors
at fixed addresses, `_evaluation` looks at members; `_capture` turns steps into CUDA graphs;
`_stepper` does what the lockstep asks for, `_narrowing` tells it when to make itself small, and
`_choice` decides whether and how.
"""

from dynsnap.train.side_by_side._choice import groups, is_suited, side_by_side
from dynsnap.train.side_by_side._stepper import SideBySideStepper

__all__ = ["SideBySideStepper", "groups", "is_suited", "side_by_side"]
