import pytest

from dynsnap.cli._options import parse_renames
from dynsnap.errors import PlanError


@pytest.mark.parametrize("text", ["cat", "cat=", "=dog", "="])
def test_half_a_rename_is_shown_how(text):
    with pytest.raises(PlanError, match="--rename takes OLD=NEW"):
        parse_renames([text])


def test_a_class_has_one_new_name():
    assert parse_renames(["a=b", "c=b", "a=b"]) == {"a": "b", "c": "b"}
    with pytest.raises(PlanError, match="class 'a' two new names"):
        parse_renames(["a=b", "a=c"])
