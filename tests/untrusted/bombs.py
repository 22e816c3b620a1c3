"""Files of a few bytes that ask for a lot of memory, and a measure of what reading one takes."""

import contextlib
import io
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import numpy as np

MEGABYTE = 1 << 20


@contextlib.contextmanager
def memory_below(megabytes):
    """Fail if Python and numpy take more than this inside the block."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < megabytes * MEGABYTE, f"{peak / MEGABYTE:.0f} MB"


def header(shape, dtype="<f8"):
    """The first bytes of an array in numpy's format, without its values."""
    file = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue()


def deflated(start, piece, times):
    """Compressed bytes of a start and of a piece of a megabyte many times, made in no time."""

    def block(content):
        maker = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        # A full flush ends a block so that it does not depend on what comes before.
        return maker.compress(content) + maker.flush(zlib.Z_FULL_FLUSH)

    end = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS).flush()
    return block(start) + block(piece) * times + end


def write_npz(path, *, bombs=None, compression=zipfile.ZIP_DEFLATED, **arrays):
    """An NPZ archive of plain arrays, and of arrays of zeros that are large once unpacked."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, np.asarray(array))
        for name, shape in (bombs or {}).items():
            start, size = header(shape), 8 * int(np.prod(shape))
            content = deflated(start, bytes(MEGABYTE), size // MEGABYTE)
            place = zipfile.ZipInfo(f"{name}.npy")
            archive.writestr(place, content, zipfile.ZIP_STORED)
            # Stored as it is, and then said to be compressed.
            place.compress_type, place.file_size = zipfile.ZIP_DEFLATED, len(start) + size
    with path.open("r+b") as file, zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():  # local headers must say the same
            file.seek(entry.header_offset + 8)
            file.write(struct.pack("<H", entry.compress_type))


def write_gz(path, start, piece, times):
    """A gzip file of a start and of a piece of a megabyte many times."""
    head = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x02\xff"
    path.write_bytes(head + deflated(start, piece, times) + bytes(8))


def write_sparse_tar(path, name, size):
    """A tar file with one member that claims a size for which it has no bytes."""
    member = tarfile.TarInfo(name)
    member.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[483:495] = f"{size:011o}\0".encode()  # the real size, in GNU's header
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    path.write_bytes(bytes(block) + bytes(1024))
