"""A digest of a whole file inside the file itself, so that a flipped bit is noticed.

Parquet and Arrow files carry it in the metadata of their schema, under `dynsnap.digest`, and NPZ
archives as their comment: CRC-32 of every mebibyte, hashed together, and how long the file is. It
covers every byte but its own, which are taken for a blank of the same length. It is for damage, not
for forgery: a forger can change the digest too.
"""

import hashlib
import re
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias

from dynsnap.errors import InputError

Sealed: TypeAlias = Literal["Parquet", "Arrow", "NPZ"]

DIGEST_KEY = b"dynsnap.digest"
_CHUNK = 1 << 20
_LONGEST = 64 << 20  # bytes of a schema: far more than all class names take
_MARK = b"dynsnap1:"
_FORM = re.compile(rb"(dynsnap1:[0-9a-f]{32}:([0-9a-f]{16})):([0-9a-f]{8})")
BLANK = _MARK + b"0" * 32 + b":" + b"0" * 16 + b":" + b"0" * 8


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether what was read of a generation is what was written.

    Attributes:
        verified: Whether every byte was checked.
        detail: What was checked, or why nothing was.
        file: Whether there was a file to check; else the detail states where it came from.

    Example:
        >>> str(Verification(False, "no digest"))
        'not verified: no digest'
        >>> str(Verification(False, "predicted by this run", file=False))
        'predicted by this run'
    """

    verified: bool
    detail: str
    file: bool = True

    def __str__(self) -> str:
        if not self.file:
            return self.detail
        return f"{'verified' if self.verified else 'not verified'}: {self.detail}"


NO_DIGEST = Verification(False, "no digest")
_REWRITTEN = Verification(False, "written again by another program")
IN_MEMORY = Verification(False, "in memory, with no file to verify", file=False)


def together(parts: Collection[Verification]) -> Verification:
    """What is said of many files that are one generation.

    Example:
        >>> str(together([NO_DIGEST, Verification(True, "digest")]))
        'not verified: no digest (1 of 2 files)'
    """
    lacking = [part for part in parts if not part.verified]
    if not lacking:
        return next(iter(parts), NO_DIGEST)
    if len(parts) == 1:
        return lacking[0]
    return Verification(False, f"{lacking[0].detail} ({len(lacking)} of {len(parts)} files)")


def seal(path: Path, kind: Sealed) -> None:
    """Fill the digest into a file that was written with a blank one."""
    with path.open("r+b") as file:
        places = [place for place, text in _found(file, kind) if text == BLANK]
        # Names that look like a blank digest: the file stays as it is, and counts as not verified.
        if len(places) != (2 if kind == "Arrow" else 1):
            return
        digest = _digest(file, places)
        for place in places:
            file.seek(place)
            file.write(digest)


def digest_of(path: Path, kind: Sealed) -> str | None:
    """The digest that a file carries, without its mark; None where it has none of its own."""
    with path.open("rb") as file:
        texts = {text for _, text in _found(file, kind)}
    if len(texts) != 1 or texts == {BLANK}:
        return None
    return texts.pop().removeprefix(_MARK).decode("ascii", "replace")


def verify(path: Path, kind: Sealed) -> Verification:
    """Check a file against the digest that it carries.

    Args:
        path: A file of this machine.
        kind: Its format.

    Raises:
        InputError: The file is not as it was written.
    """
    with path.open("rb") as file:
        found = dict(_found(file, kind))
        texts = set(found.values())
        if not texts:
            return NO_DIGEST
        if texts == {BLANK}:
            return _REWRITTEN
        text = min(texts)
        form = _FORM.fullmatch(text)
        if len(texts) > 1 or form is None or int(form[3], 16) != zlib.crc32(form[1]):
            raise _damaged()
        if int(form[2], 16) != file.seek(0, 2):
            return _REWRITTEN
        if _digest(file, found) != text:
            raise _damaged()
    return Verification(True, "digest")


def _damaged() -> InputError:
    return InputError(
        "Its content does not match its digest: it was damaged since it was written. Write it "
        f"again; if it was edited on purpose, drop `{DIGEST_KEY.decode()}` from its metadata."
    )


def _digest(file: BinaryIO, places: Collection[int]) -> bytes:
    """The digest of a file, with a blank wherever its own digest stands."""
    buffer = bytearray(_CHUNK)
    whole = hashlib.blake2b(digest_size=16)
    start = file.seek(0)
    while size := file.readinto(buffer):  # type: ignore[attr-defined]  # of every open file
        for place in places:
            first, last = max(place, start), min(place + len(BLANK), start + size)
            if first < last:
                buffer[first - start : last - start] = BLANK[first - place : last - place]
        whole.update(zlib.crc32(memoryview(buffer)[:size]).to_bytes(4, "little"))
        start += size
    text = b"%s%s:%016x" % (_MARK, whole.hexdigest().encode(), start)
    return b"%s:%08x" % (text, zlib.crc32(text))


def _found(file: BinaryIO, kind: Sealed) -> Iterator[tuple[int, bytes]]:
    """Where digests stand, and what they are, sound or not; blank ones among them.

    They are looked for in the bytes, not in what a library makes of them: one flipped bit can hide
    all metadata from it.
    """
    size = file.seek(0, 2)
    if kind == "Parquet":
        windows = [(size - 8 - _number(file, size - 8), size)]
    elif kind == "Arrow":  # in front: a magic word, a mark, the length of the schema
        windows = [(0, 16 + _number(file, 12)), (size - 10 - _number(file, size - 10), size)]
    else:  # the comment of an archive is the last thing in it
        windows = [(size - len(BLANK), size)]
    for first, last in windows:
        first, last = max(0, first), min(size, last, max(0, first) + _LONGEST)
        file.seek(first)
        content = file.read(max(0, last - first))
        place = content.find(_MARK)
        while place >= 0:
            yield first + place, content[place : place + len(BLANK)]
            place = content.find(_MARK, place + 1)


def _number(file: BinaryIO, place: int) -> int:
    file.seek(max(0, place))
    content = file.read(4)
    return struct.unpack("<I", content)[0] if len(content) == 4 else 0
