import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.errors import InputError
from dynsnap.predictions._text import check_class_names, natural_order, on_one_line
from tests.messages import naming


@given(st.lists(st.integers(), unique=True))
def test_numbers_come_in_the_order_of_their_values(numbers):
    assert natural_order(map(str, numbers)) == tuple(map(str, sorted(numbers)))


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_numbers_within_text_come_in_the_order_of_their_values(numbers):
    ordered = natural_order(f"page {number} of it" for number in numbers)
    assert ordered == tuple(f"page {number} of it" for number in sorted(numbers))


@given(st.lists(st.text(max_size=4) | st.from_regex(r"[a-c0-9.+-]{1,5}"), unique=True))
def test_the_order_does_not_depend_on_the_order_given(texts):
    shuffled = random.Random(0).sample(texts, len(texts))
    assert natural_order(shuffled) == natural_order(texts)


def test_very_long_numbers_can_be_put_in_order():
    long = "x" + "9" * 5000
    assert natural_order([long, "x10", "x9"]) == ("x9", "x10", long)


@given(st.text() | st.text(st.characters(categories=["Cc", "Cs", "Zl", "Zp"])))
def test_whatever_is_shown_stays_on_one_line(text):
    line = on_one_line(text)
    assert line.isprintable() or not any(ord(letter) < 32 for letter in line)
    assert len(line.splitlines()) <= 1
    line.encode()


def test_a_class_name_is_no_book():
    # Names are compared with each other letter by letter, and shown in every table.
    assert check_class_names(["a" * 10_000, "b"])
    with pytest.raises(InputError, match=naming("10,001", "free text")) as found:
        check_class_names(["a" * 10_001, "b"])
    assert len(str(found.value)) < 300
