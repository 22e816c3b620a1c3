"""Arrays in numpy's format are read as numpy reads them, without a change that others would see."""

import io
import threading
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from dynsnap._untrusted import ArrayArchive, array_header
from dynsnap._untrusted._arrays import parse_literal, read_values
from dynsnap.errors import FileError
from tests.threads import changing_often, together

RECORD = np.dtype([("a b", "<f4"), ('it\'s\\ "näh"\n', "<i8", (2,)), ("c", [("d", "|S3")])])
DTYPES = st.one_of(
    arrays_of.scalar_dtypes(),
    arrays_of.byte_string_dtypes(),
    arrays_of.unicode_string_dtypes(),
    st.just(RECORD),
)


@given(
    DTYPES,
    arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0),
    st.sampled_from("CF"),
    st.sampled_from([None, (2, 0), (3, 0)]),
)
def test_what_numpy_writes_is_read_as_numpy_reads_it(dtype, shape, order, version):
    count = int(np.prod(shape)) * dtype.itemsize
    content = np.random.default_rng(0).integers(1, 100, count, dtype=np.uint8).tobytes()
    if dtype.kind in "U" or dtype == RECORD or not dtype.itemsize:
        content = bytes(count)
    flat = np.zeros(shape, dtype) if not count else np.frombuffer(content, dtype).reshape(shape)
    array, file = np.array(flat, order=order), io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the newer versions, which old readers do not know
        np.lib.format.write_array(file, array, version=version)
    header = array_header(file.getvalue(), len(file.getvalue()))
    file.seek(0)
    found = read_values(file, header)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()
    assert found.flags.f_contiguous == array.flags.f_contiguous


def npy(text, values=bytes(800)):
    """An array with this for a header."""
    body = text.encode("latin-1") + b"\n"
    return b"\x93NUMPY\x01\x00" + len(body).to_bytes(2, "little") + body + values


OLD = npy("{'descr': '<f8', 'fortran_order': False, 'shape': (50L, 2L), }")
ODD = {
    "an escape that none is": r"{'descr': [('\d', '<f8')], 'fortran_order': False, 'shape': (1,)}",
    "a word": "{'descr': '<f8', 'fortran_order': False, 'shape': (1or 2,)}",
    "a call": "{'descr': '<f8', 'fortran_order': False, 'shape': (len('a'),)}",
    "deep": "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 4000 + ")" * 4000 + "}",
    "digits": "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1" * 9000 + ",)}",
    "digits without an end": "1" * 9000 + "!",
    "another order": "{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}",
    "a key more": "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}",
    "a fraction": "{'descr': '<f8', 'fortran_order': False, 'shape': (1.5,)}",
    "a truth": "{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}",
    "beyond all": f"{{'descr': '<f8', 'fortran_order': False, 'shape': (0, {2**62}, 9)}}",
    "many dimensions": f"{{'descr': '<f8', 'fortran_order': False, 'shape': {(1,) * 65}}}",
    "arrays of arrays": "{'descr': ('<f8', (2,)), 'fortran_order': False, 'shape': (1,)}",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
    "several types": "{'descr': '<f4,<f4', 'fortran_order': False, 'shape': (1,)}",
    "two of a type": "{'descr': '2f4', 'fortran_order': False, 'shape': (1,)}",
    "a key twice": "{'descr': '<f8', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
    "values side by side": "{'descr': '<f8', 'fortran_order': False, 'shape': (1 2)}",
    "no comma": "{'descr': '<f8' 'fortran_order': False, 'shape': (1,)}",
    "more behind it": "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}, 1",
    "no end": "{'descr': '<f8', 'fortran_order': False, 'shape': (1,",
    "a field without a type": "{'descr': [('a',)], 'fortran_order': False, 'shape': (1,)}",
    "too many": "{'descr': '<f8', 'fortran_order': False, 'shape': (101,)}",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}",
}


@pytest.mark.parametrize("name", ODD)
def test_other_headers_are_refused_without_a_warning(name):
    content = npy(ODD[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"."):
            array_header(content, len(content))


def test_threads_that_read_leave_the_filters_of_warnings_alone(tmp_path, monkeypatch):
    np.savez(tmp_path / "some.npz", first=np.arange(50.0))
    (tmp_path / "old.npz").write_bytes(_zipped({"first.npy": OLD}))
    (tmp_path / "odd.npz").write_bytes(_zipped({"first.npy": npy(ODD["a word"])}))
    monkeypatch.setattr(warnings, "catch_warnings", None)  # which nobody may ask for
    before, kept = warnings.filters, list(warnings.filters)
    start, seen = threading.Barrier(8), []

    def read():
        start.wait()
        for _ in range(5):
            for name in ("some", "old"):
                with ArrayArchive(tmp_path / f"{name}.npz") as archive:
                    archive.read("first")
            with pytest.raises(FileError), ArrayArchive(tmp_path / "odd.npz"):
                pass
            seen.append(warnings.filters is before and warnings.filters == kept)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 40


TEXT = st.text(st.sampled_from("aL1 '\"\\\n\t\x01é\u2028😀{,:"), max_size=8)
PLAIN = st.recursive(
    st.one_of(TEXT, st.integers(0, 2**60), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXT, inner, max_size=3),
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_literals_are_read_as_python_reads_them(value):
    assert parse_literal(f" {value!r}\n") == value


def test_threads_that_read_headers_do_not_disturb_each_other():
    content = npy(f"{{'descr': {RECORD.descr!r}, 'fortran_order': False, 'shape': (2, 3)}}")

    def read():
        for _ in range(30):
            assert array_header(content, len(content)).dtype == RECORD

    with changing_often():
        together(*[read] * 8)


def test_arrays_of_python_2_are_read(tmp_path):
    (tmp_path / "old.npz").write_bytes(_zipped({"first.npy": OLD}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ArrayArchive(tmp_path / "old.npz") as archive:
            assert archive.read("first").shape == (50, 2)


def _zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, part in files.items():
            archive.writestr(name, part)
    return content.getvalue()
