"""Many rounds at once on one GPU.

`_group` makes one network of several copies of a module, out of the layers in `_layers` and
`_word_layers`; a `_feed` gathers their batches, of `_images` or `_tokens`; `_network` is one step
of them as tensors at fixed addresses, `_evaluation` looks at members; `_capture` turns steps into
CUDA graphs; `_stepper` does what the lockstep asks for, and `_choice` decides whether and how.
"""

from dynsnap.train.side_by_side._choice import groups, is_suited, side_by_side
from dynsnap.train.side_by_side._stepper import SideBySideStepper

__all__ = ["SideBySideStepper", "groups", "is_suited", "side_by_side"]
