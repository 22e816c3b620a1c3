"""How a kernel moves over images: shared by the convolutions of torch and of Triton."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A kernel's way over an image, the same in both directions.

    Attributes:
        side: Rows and columns of the kernel.
        stride: Pixels from one place to the next.
        before: Rows of zeros above the image and columns left of it; below and to the right there
            are as many as the places need.
    """

    side: int
    stride: int
    before: int


# The kernel that ResNets are made of: what it finds has the shape of what it was given.
KEEPING_SHAPE = Window(side=3, stride=1, before=1)
