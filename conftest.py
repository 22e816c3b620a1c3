"""What holds for all tests, those in docstrings too."""

import importlib.util
import shutil
import signal
import tempfile
from multiprocessing import util

import pytest

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


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder(tmp_path_factory):
    """A folder for what examples make with `tempfile` and killed processes leave there."""
    tmp_path_factory.getbasetemp()  # stays where it is: there one looks into what has failed
    folder = tempfile.mkdtemp(prefix="dynsnap-tests-")
    # Removed when the process ends, and after what multiprocessing keeps in it until then.
    util.Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=-1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield
