"""Pages of a Parquet file that claim to be larger than they are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dynsnap
from dynsnap.errors import FileError, InputError
from dynsnap.predictions._declared import _Header, check_pages
from tests.untrusted.bombs import memory_below


def varint(number):
    coded, said = number << 1, b""
    while coded >= 0x80:
        said += bytes([coded & 0x7F | 0x80])
        coded >>= 7
    return said + bytes([coded])


def table(rows=1000):
    return pa.table({"id": np.arange(rows), "label": ["a", "b"] * (rows // 2)})


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("checked", [False, True])
def test_pages_of_every_kind_are_measured_as_pyarrow_wrote_them(
    tmp_path, version, compression, checked
):
    file = tmp_path / "x.parquet"
    settings = {"data_page_version": version, "compression": compression}
    pq.write_table(
        table(),
        file,
        **settings,
        write_page_checksum=checked,
        data_page_size=500,
        row_group_size=300,
    )
    about = pq.read_metadata(file)
    check_pages(file, about)
    content = file.read_bytes()
    for group in range(about.num_row_groups):
        for column in range(about.num_columns):
            chunk = about.row_group(group).column(column)
            place = chunk.data_page_offset
            if chunk.has_dictionary_page:
                place = min(place, chunk.dictionary_page_offset)
            end, unpacked = place + chunk.total_compressed_size, 0
            while place < end:
                header = _Header(content, place)
                unpacked += header.unpacked + header.end - place
                place = header.end + header.stored
            # Pyarrow's own sums: the pages fill the chunk, and unpack to what it says.
            assert (place, unpacked) == (end, chunk.total_uncompressed_size)


@pytest.mark.parametrize("place", [1, 2])
def test_a_page_that_claims_a_gigabyte_takes_no_memory(tmp_path, place):
    file = tmp_path / "x.parquet"
    pq.write_table(table(), file, compression="zstd", use_dictionary=False)
    content = bytearray(file.read_bytes())
    chunk = pq.read_metadata(file).row_group(0).column(0)
    header = _Header(content, chunk.data_page_offset)
    sizes = [header.unpacked, header.stored]
    old = b"".join(b"\x15" + varint(size) for size in sizes)
    sizes[place - 1] = 2**30
    new = b"".join(b"\x15" + varint(size) for size in sizes)
    start = content.index(old, chunk.data_page_offset)
    longer = len(new) - len(old)
    # The statistics at the end of the header give their room.
    content[start : start + len(new)] = new
    assert longer > 0
    file.write_bytes(bytes(content))
    with memory_below(20), pytest.raises((FileError, InputError)):
        dynsnap.read(file)
