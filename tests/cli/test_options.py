import json
import re

import pytest

from tests.cli.helpers import NEW, OLD, dynsnap, refused, table
from tests.messages import naming


@pytest.mark.parametrize("text", ["cat", "cat=", "=dog", "="])
def test_half_a_rename_is_shown_how(text):
    assert "--rename takes OLD=NEW" in refused("compare", OLD, NEW, "--rename", text, code=2)


def test_a_class_has_one_new_name(tmp_path):
    files = [
        table(tmp_path / "old.csv", ["1,b,a", "2,b,c"]),
        table(tmp_path / "new.csv", ["1,b,b", "2,b,b"]),
    ]
    renames = ("--rename", "a=b", "--rename", "c=b", "--rename", "a=b")
    (pair,) = json.loads(dynsnap("compare", *files, *renames, "--json", "-").stdout)["pairs"]
    assert pair["metrics"]["consistency"]["value"] == 1
    said = refused("compare", *files, "--rename", "a=b", "--rename", "a=c", code=2)
    assert re.search(naming("class 'a'", "two new names"), said)
