import numpy as np
import pytest

from dynsnap.errors import PlanError
from dynsnap.study import DataPlan, open_stream
from tests.messages import naming


def test_digits_grow_as_the_demo_has_them():
    stream, _ = open_stream(DataPlan())
    seen = [len(set(stream.pool.labels[rows].tolist())) for rows in stream.generations]
    assert seen == [9, 9, 10]


def test_growth_can_be_said_otherwise():
    stream, _ = open_stream(DataPlan(growth={"fractions": [0.5, 1.0], "late": {"3": 2}}))
    assert len(stream.generations) == 2
    assert stream.late == ("3",)


def test_a_subsample_takes_the_first_rows_of_every_class():
    whole, _ = open_stream(DataPlan())
    part, _ = open_stream(DataPlan(subsample=0.5))
    ratio = len(part.evaluation["test"]) / len(whole.evaluation["test"])
    assert ratio == pytest.approx(0.5, abs=0.02)
    assert set(part.pool.ids) <= {f"digits-{row}" for row in range(1797)}


def test_data_from_a_file_grows_by_the_default(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    np.savez(tmp_path / "data.npz", inputs=rng.normal(size=(200, 3)), labels=labels)
    stream, _ = open_stream(DataPlan(source="npz", path=tmp_path / "data.npz"))
    assert len(stream.generations) == 3


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"source": "digit"}, naming("'digit'", '"digits"')),
        ({"growth": {"fraction": [1]}}, naming("`fraction`", '"fractions"')),
        ({"growth": {"fractions": 3}}, naming("`fractions`", "list", "3")),
        ({"growth": {"late": {"frog": 2}}}, "names class 'frog'"),
        ({"subsample": 0.0}, "`subsample` must be above 0"),
        ({"options": {"sise": 3}}, "no option 'sise'"),
    ],
)
def test_wrong_data_settings_are_one_clear_line(plan, message):
    with pytest.raises(PlanError, match=message) as caught:
        open_stream(DataPlan(**plan))
    assert "\n" not in str(caught.value)
