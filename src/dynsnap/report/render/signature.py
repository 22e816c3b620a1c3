"""What ends every page: when it was made, by which versions, and that it fetches nothing."""

import datetime
import os
import platform
import time
from importlib import metadata

from dynsnap import __version__
from dynsnap.errors import PlanError


def signature(made_from: str = "") -> str:
    """When a page was made and by which versions, and what from, where that is known.

    `SOURCE_DATE_EPOCH` sets the date, so that a page can be made again to the last byte.

    Args:
        made_from: A sentence.

    Raises:
        PlanError: `SOURCE_DATE_EPOCH` is not a moment.

    Example:
        >>> signature("2 files: old.csv, new.csv.").partition(". ")[2]
        '2 files: old.csv, new.csv. Nothing on this page is fetched from anywhere.'
    """
    versions = [f"dynsnap {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in ("numpy", "pyarrow")]
    parts = (
        f"Made on {_today()} (UTC) by {', '.join(versions)}.",
        made_from,
        "Nothing on this page is fetched from anywhere.",
    )
    return " ".join(part for part in parts if part)


def _today() -> datetime.date:
    asked = os.environ.get("SOURCE_DATE_EPOCH") or str(int(time.time()))
    try:
        return datetime.datetime.fromtimestamp(int(asked), datetime.UTC).date()
    except (ValueError, OverflowError, OSError) as error:
        raise PlanError(
            f"SOURCE_DATE_EPOCH must be a count of seconds since 1970, got {asked!r}. "
            "Set it to one, for instance with `git log -1 --format=%ct`, or unset it."
        ) from error
