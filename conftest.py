"""What holds for all tests, those in docstrings too."""

import importlib.util
import signal

# A shell starts jobs in the background with Ctrl-C ignored, and processes inherit that. Tests of
# Ctrl-C would then wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Without Triton, which only GPUs need, its kernels cannot be imported for their doctests.
KERNELS = [
    "src/dynsnap/train/side_by_side/_convolution_fast.py",
    "src/dynsnap/train/side_by_side/_convolution_kernels.py",
    "src/dynsnap/train/side_by_side/_vectors_kernels.py",
]
collect_ignore = [] if importlib.util.find_spec("triton") else KERNELS
# It has no doctests, and importing MLflow takes seconds.
collect_ignore.append("src/dynsnap/mlflow/_evaluator.py")
