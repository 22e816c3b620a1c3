"""Without Triton, which only GPUs need, its kernels cannot be imported for their doctests."""

import importlib.util

KERNELS = [
    "src/dynsnap/train/side_by_side/_convolution_fast.py",
    "src/dynsnap/train/side_by_side/_convolution_kernels.py",
    "src/dynsnap/train/side_by_side/_vectors_kernels.py",
]
collect_ignore = [] if importlib.util.find_spec("triton") else KERNELS
