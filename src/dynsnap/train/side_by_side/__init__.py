"""Many rounds at once on one GPU.

`_choice` decides whether and how. `_stepper` implements the lockstep's `Stepper`: it validates
members, and rebuilds a smaller network when few rounds remain. `_group` makes one network of
several copies of a module, from the layers in `_layers` and the residual block in `_block`. They
compute by `_convolution` and `_vectors`, with Triton kernels on a GPU and torch elsewhere. `_feed`
gathers batches of images or tokens. `_network` is one step of all rounds on tensors at fixed
addresses, as a CUDA graph.
"""

from dynsnap.train.side_by_side._choice import groups, is_suited, side_by_side
from dynsnap.train.side_by_side._network import Losses
from dynsnap.train.side_by_side._stepper import SideBySideStepper

__all__ = ["Losses", "SideBySideStepper", "groups", "is_suited", "side_by_side"]
