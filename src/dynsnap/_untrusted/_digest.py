"""A file pinned by the digest of its bytes."""

import hashlib
import hmac
import re
from pathlib import Path

from dynsnap._untrusted._regular import regular
from dynsnap.errors import FileError, PlanError, one_line

DIGEST = "[0-9a-f]{64}"


def check_digest(text: str) -> str:
    """A SHA-256 as its 64 hexadecimal digits, as `sha256sum` writes them.

    Example:
        >>> check_digest("AB" * 32)[:6]
        'ababab'
    """
    plain = text.strip().lower().removeprefix("sha256:")
    if not re.fullmatch(DIGEST, plain):
        raise PlanError(
            f"A SHA-256 digest has 64 hexadecimal digits, got {one_line(text[:80])!r}. "
            "`sha256sum FILE` prints the digest of a file."
        )
    return plain


def read_pinned(path: Path, sha256: str | None, *, start: bytes, otherwise: str) -> bytes:
    """The bytes of a file, if they have this digest.

    The file is read once: the bytes that were digested are the bytes that are used.

    Args:
        path: The file.
        sha256: Its digest; None for any.
        start: How it begins; a file that does not is not read further.
        otherwise: What is said of such a file.
    """
    wanted = None if sha256 is None else check_digest(sha256)
    try:
        with regular(path).open("rb") as file:
            content = file.read(len(start))
            content += file.read() if content == start else b""
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}. Name a file.") from error
    if not content.startswith(start):
        raise FileError(otherwise)
    if wanted is not None:
        found = hashlib.sha256(content).hexdigest()
        if not hmac.compare_digest(found, wanted):
            raise FileError(
                f"{path} is not the file that was asked for: its SHA-256 is {found}, not {wanted}. "
                "It was not opened."
            )
    return content
