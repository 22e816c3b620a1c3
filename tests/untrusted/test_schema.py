import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap._untrusted import (
    AnyOf,
    Flag,
    ListOf,
    MapOf,
    Null,
    Number,
    OneOf,
    Plain,
    Table,
    Text,
    Whole,
    mismatch,
    parse_json,
)

SCHEMA = Table(
    {
        "kind": OneOf(("cat", "dog")),
        "size": Whole(1, 9),
        "share": Number(0, 1),
        "names": ListOf(Text(longest=5), least=1, most=3, distinct=True),
    },
    {"on": Flag(), "more": MapOf(AnyOf(Null(), Whole())), "settings": Plain(depth=2)},
)
SOUND = {"kind": "cat", "size": 3, "share": 0.5, "names": ["a", "b"]}

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"size": 0}, "size"),
        ({"size": 10}, "size"),
        ({"size": True}, "size"),
        ({"size": 3.0}, "size"),
        ({"size": 10**400}, "size"),
        ({"share": float("nan")}, "share"),
        ({"share": 10**400}, "share"),
        ({"share": "0.5"}, "share"),
        ({"kind": "cow"}, "kind"),
        ({"names": []}, "names"),
        ({"names": ["a", "a"]}, "names"),
        ({"names": ["a", "b", "c", "d"]}, "names"),
        ({"names": ["a", 3]}, r"names[1]"),
        ({"names": ["abcdef"]}, r"names[0]"),
        ({"names": ["\x1b[31"]}, r"names[0]"),
        ({"names": ["\ud800"]}, r"names[0]"),
        ({"on": 1}, "on"),
        ({"more": {"x": -1}}, "more.x"),
        ({"more": [1]}, "more"),
        ({"settings": [[[1]]]}, "settings"),
        ({"factory": "os:system"}, "factory"),
    ],
)
def test_whatever_departs_from_a_schema_is_named_by_its_place(change, place):
    assert mismatch(SCHEMA, SOUND) is None
    problem = mismatch(SCHEMA, {**SOUND, **change})
    assert problem is not None
    assert place in problem
    assert len(problem) < 500


def test_a_key_that_is_missing_is_named():
    for key in SOUND:
        short = {name: value for name, value in SOUND.items() if name != key}
        assert f"`{key}`" in mismatch(SCHEMA, short)


@given(plain)
def test_any_value_is_either_sound_or_said_to_be_wrong_in_one_line(value):
    for schema in (SCHEMA, Plain(), ListOf(Plain()), MapOf(Number())):
        problem = mismatch(schema, value)
        assert problem is None or ("\n" not in problem and "\x1b" not in problem)


@given(st.text(min_size=1).filter(lambda key: key not in (*SOUND, "on", "more", "settings")), plain)
def test_no_key_is_taken_that_a_schema_does_not_name(key, value):
    assert mismatch(SCHEMA, {**SOUND, key: value}) is not None


@given(plain)
def test_what_is_parsed_is_what_json_says_and_finite(value):
    text = json.dumps(value).encode()
    try:
        assert parse_json(text) == value
    except ValueError:
        assert b"NaN" in text or b"Infinity" in text


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"9" * 5_000,
        b'{"a": 1, "a": 2}',
        b"[NaN]",
        b"[-Infinity]",
        b"\xff",
        b"",
        b"{",
    ],
)
def test_json_that_makes_no_sense_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_json_that_is_too_long_is_not_parsed():
    with pytest.raises(ValueError, match="are the most"):
        parse_json(b"[1, 2, 3]", most=8)
