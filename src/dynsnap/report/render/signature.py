"""What ends every page: when it was made, by which versions, and that it fetches nothing."""

import datetime
import os
import platform
import time
from importlib import metadata

from dynsnap import __version__


def signature(made_from: str = "") -> str:
    """When a page was made and by which versions, and what from, where that is known.

    `SOURCE_DATE_EPOCH` sets the date, so that a page can be made again to the last byte.

    Args:
        made_from: A sentence.

    Example:
        >>> signature("2 files: old.csv, new.csv.").partition(". ")[2]
        '2 files: old.csv, new.csv. Nothing on this page is fetched from anywhere.'
    """
    made = datetime.datetime.fromtimestamp(
        int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()), datetime.UTC
    )
    versions = [f"dynsnap {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in ("numpy", "pyarrow")]
    parts = (
        f"Made on {made:%Y-%m-%d} (UTC) by {', '.join(versions)}.",
        made_from,
        "Nothing on this page is fetched from anywhere.",
    )
    return " ".join(part for part in parts if part)
