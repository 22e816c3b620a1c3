"""JSON Lines of strangers: what would break the parser, or fill the memory, is refused before."""

import gzip
import json
import random
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dynsnap import read
from dynsnap.errors import FileError, InputError
from dynsnap.predictions import _text_files
from tests.messages import naming

DEEP = 100_000
BAD = {
    "deep lists": ('{"a":' + "[" * DEEP + "]" * DEEP + "}\n", ("Line 1", "nested")),
    "deep objects": ('{"a":' * DEEP + "1" + "}" * DEEP + "\n", ("Line 1", "nested")),
    "deep over many lines": ('{"a":[\n' * DEEP + "]}\n" * DEEP, ("Line 1",)),
    "deep behind an escape": ('{"a":"\\\\"}\n{"a":"\\""' + "[" * DEEP + "\n", ("Line 2",)),
    "deep behind a carriage return": ('{"a":"\r' + "[" * DEEP + '"}\n', ("Line 1", "text")),
    "deep behind a quote": ('{"a":"x}\n' + '"' + "[" * DEEP + "\n", ("Line 1", "text")),
    "one list of rows": ('[{"id": 1},\n{"id": 2}]\n', ("Line 1", "line of its own")),
    "pretty": ('{\n  "id": 1\n}\n', ("Line 1", "line of its own")),
    "cut off": ('{"id": 1, "label": "a"}\n{"id": 2, "la', ("Line 2",)),
    "another name in each line": ("".join(f'{{"k{n}":1}}\n' for n in range(50_001)), ("columns",)),
    "many names and many lines": (
        "{" + ",".join(f'"k{n}":1' for n in range(20_000)) + "}\n" + "{}\n" * 100_000,
        ("values", "memory"),
    ),
    "mixed kinds": ('{"id": 1}\n{"id": "x"}\n', ("JSON Lines", "id")),
    "a name twice": ('{"id": 1, "id": 2, "label": "a"}\n', ("id", "twice")),
    "no UTF-8": (b'{"id": 1, "label": "\xff"}\n', ("UTF-8",)),
    "nothing": ("", ("empty",)),
    "null alone": ("null\n", ("Line 1", "null")),
    "null before": ('null {"id": 1, "label": "a"}\n', ("Line 1",)),
    "null behind": ('{"id": 1, "label": "a"}\n{"id": 2, "label": "a"} null\n', ("Line 2",)),
    "null between": ('{"id": 1, "label": "a"}\n \n null\n{"id": 2}\n', ("Line 3", "null")),
    "a number": ('{"id": 1, "label": "a"}\n5\n', ("Line 2",)),
    "commas between": ('{"id": 1},\n{"id": 2},\n', ("Line 1",)),
    "two in a line": ('{"id": 1}\n{"id": 2}{"id": 3}\n', ("Line 2", "line of its own")),
}


@pytest.mark.parametrize(("text", "named"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said_in_one_line(text, named, tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError, match=naming(r"bad\.jsonl", *named)) as found:
        read(file)
    assert "\n" not in str(found.value)


MTIMES = st.integers(0, 2**32 - 1)  # gzip writes one into the file


@given(mtime=MTIMES, lines=st.integers(1, 40))
@example(mtime=int.from_bytes(b"[]]["), lines=1)
@example(mtime=int.from_bytes(b'{"id'), lines=1)
@example(mtime=int.from_bytes(b"\n{}\n"), lines=1)
def test_a_packed_file_is_called_packed_whatever_its_bytes(mtime, lines, tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / "packed.jsonl"
    file.write_bytes(gzip.compress(b'{"id": 1}\n' * lines, mtime=mtime))
    with pytest.raises(FileError, match=naming(r"packed\.jsonl", "gzip", "jsonl.gz")):
        read(file)


KEYS = st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(KEYS, VALUES, max_size=3), min_size=1, max_size=4)


def depth(value):
    if isinstance(value, list | dict):
        inside = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inside), default=0)
    return 0


@given(rows=ROWS)
def test_what_is_let_through_is_exactly_what_is_flat_enough(rows):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    deepest = max(map(depth, rows))
    if deepest > _text_files._DEEPEST:
        with pytest.raises(InputError, match="nested"):
            _text_files._check_shape(text, 1)
    else:
        assert _text_files._check_shape(text, 1) == len(rows)


def test_texts_that_look_like_times_stay_texts(tmp_path):
    rows = [{"id": "2024-01-01", "label": "2024-01-02 10:00", "truth": None},
            {"id": "007", "label": "[[{", "truth": 'b"\\'}]  # fmt: skip
    file = tmp_path / "file.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read(file)
    assert found.ids.tolist() == ["2024-01-01", "007"]
    assert found.names_of(found.labels).tolist() == ["2024-01-02 10:00", "[[{"]
    assert found.unlabelled == 1


def test_lines_are_checked_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(_text_files, "_BLOCK", 64)
    rng = random.Random(0)
    rows = [{"id": n, "label": rng.choice("ab"), "x": "]" * (n % 7)} for n in range(60)]
    file = tmp_path / "file.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows))
    _text_files._check_lines(file)
    file.write_text(file.read_text() + "\n" + '{"id": ' + "1" * 100 + "}")
    with pytest.raises(InputError, match="longer"):
        _text_files._check_lines(file)


def test_a_long_text_takes_little_memory(tmp_path):
    # Looking for names in a line, an expression that steps back keeps every step.
    size = 1 << 20
    file = tmp_path / "long.jsonl"
    file.write_text(json.dumps({"id": 1, "label": "a", "prompt": "x" * size}) + "\n")
    tracemalloc.start()
    try:
        assert read(file).classes == ("a",)
        assert tracemalloc.get_traced_memory()[1] < 20 * size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("gap", ["\n", "\r\n", "\n\n", " \n\t", "\n \n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_blanks_around_objects_do_not_matter(gap, mark, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(mark + gap.join(f'{{"id": {n}, "label": "a"}}' for n in range(3)) + gap)
    assert read(file).ids.tolist() == [0, 1, 2]
