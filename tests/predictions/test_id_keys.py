import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynsnap.predictions import Predictions, _ids
from dynsnap.predictions._ids import id_keys


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=20))
def test_texts_have_the_same_key_compiled_or_not(texts):
    column = pa.array(texts, pa.large_string())
    plain = id_keys(column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_ids, "COMPILED_FROM", 1)
        assert id_keys(column).tolist() == plain.tolist()
    assert len(set(plain.tolist())) == len(set(texts))


def test_a_key_depends_on_the_id_alone():
    ids = [f"input {place}" for place in range(50)] + ["x" * 5000]
    whole = Predictions(ids=ids, classes=["a"], labels=[0] * 51)
    keys = dict(zip(ids, id_keys(whole.id_column).tolist(), strict=True))
    for part in (whole.slice(7, 23), whole.slice(40, 51), whole.take([3, 1, 50])):
        assert id_keys(part.id_column).tolist() == [keys[one] for one in part.ids]


def test_whole_numbers_are_their_own_keys():
    ids = np.array([-1, 0, 7, 2**63 - 1])
    said = Predictions(ids=ids, classes=["a"], labels=[0] * 4)
    assert id_keys(said.id_column).tolist() == [2**64 - 1, 0, 7, 2**63 - 1]
