"""TOML from a file: whatever it holds, it is read, or refused with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap._untrusted import read_toml
from tests.cli.helpers import NEW, OLD, refused

DIGITS = "9" * 5000

BAD = {
    "a number of 5,000 digits": (f"x = {DIGITS}", "64 bits"),
    "a number of 20 digits": ("x = 99999999999999999999", "64 bits"),
    "brackets within brackets": ("x = " + "[" * 100_000, "deep"),
    "lists that are closed": ("x = " + "[" * 60 + "]" * 60, "deep"),
    "tables within tables": ("x = " + "{a = " * 300 + "1" + "}" * 300, "deep"),
    "a key of many dots": ("a" + ".a" * 200_000 + " = 1", "deep"),
    "a heading of many dots": ("[a" + ' . "a"' * 1000 + "]", "deep"),
    "bytes that are not text": (b'x = "\xff"', "UTF-8"),
    "a file without end": ("#" * 2_000_000, "bytes"),
}


@pytest.mark.parametrize(("content", "reason"), BAD.values(), ids=BAD)
def test_what_python_has_an_error_of_its_own_for_is_refused_with_the_reason(
    tmp_path, content, reason
):
    file = tmp_path / "study.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=reason):
        read_toml(file)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text("x = 1", encoding="utf-8-sig")
    assert read_toml(file) == {"x": 1}


@pytest.mark.parametrize("key", ["a number of 5,000 digits", "a key of many dots"])
def test_commands_refuse_such_a_file_in_one_line(tmp_path, key):
    file = tmp_path / "bad.toml"
    content, reason = BAD[key]
    file.write_text(content)
    for command in (["run", file, "--plan"], ["gate", OLD, NEW, "--rules", file]):
        said = refused(*command, code=2)
        assert "bad.toml" in said
        assert reason in said


@given(
    st.recursive(
        st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=20),
        lambda deeper: st.lists(deeper, max_size=3),
        max_leaves=8,
    )
)
def test_what_is_toml_is_read_as_it_is(tmp_path_factory, value):
    file = tmp_path_factory.getbasetemp() / "file.toml"

    def literal(one):
        if isinstance(one, list):
            return "[" + ", ".join(map(literal, one)) + "]"
        if isinstance(one, str):
            return '"' + "".join(f"\\U{ord(sign):08x}" for sign in one) + '"'
        return repr(one)

    file.write_text(f"x = {literal(value)}\n")
    assert read_toml(file) == {"x": value}
