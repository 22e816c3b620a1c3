"""Single learners repeated from rounds that are there anyway, and rounds trained ahead."""

import numpy as np
import pytest

from dynsnap import study
from dynsnap.errors import PlanError
from dynsnap.store import RunFolder
from dynsnap.testing import CentroidTrainer
from tests.messages import naming
from tests.streams import small_stream

TEXT = """
[study]
ahead = {ahead}
resamples = 20

[training]
epochs = 4

[methods]
names = ["singlebase", "extbagging", "dynsnap-step"]
combinations = ["average"]
members = 4
snapshots = 4

[methods.singlebase]
replicates = 3
"""


class Counting(CentroidTrainer):
    """Remembers how many rounds each wave was made of."""

    def train(self, specs, /):
        self.waves = [*getattr(self, "waves", []), list(specs)]
        return super().train(specs)


def execute(folder, ahead):
    file = folder / "study.toml"
    file.write_text(TEXT.format(ahead=ahead))
    plan = study.read_study(file)
    stream = small_stream()
    trainer = Counting(stream)
    with RunFolder(folder) as store:
        result = study.run(plan, stream=stream, trainer=trainer, store=store, folder=folder)
    return result, trainer


@pytest.mark.slow
def test_single_learners_are_repeated_at_no_further_training(tmp_path):
    result, trainer = execute(tmp_path, ahead=0)
    trained = [spec for wave in trainer.waves for spec in wave]
    assert len(trained) == len(set(trained)) == 4 * 3 + 1  # extbagging's rounds, and the twin
    names = {path.name for path in result.predictions if "singlebase" in path.name}
    assert {f"singlebase-average-g{i}-r{k}.parquet" for i in (1, 2, 3) for k in (0, 1, 2)} <= names
    replicates = (tmp_path / "replicates.csv").read_text()
    values = [
        float(line.split(",")[4])
        for line in replicates.splitlines()
        if ",singlebase,average,accuracy," in line
    ]
    assert len(values) == 3
    assert len(set(values)) > 1, "the replicates should be different learners"
    assert result.value("singlebase", "accuracy").value == pytest.approx(sum(values) / 3)
    assert result.value("singlebase", "accuracy").spread == pytest.approx(np.std(values, ddof=1))
    assert result.value("extbagging", "accuracy").spread is None


@pytest.mark.slow
def test_rounds_trained_ahead_change_nothing_but_the_waves(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    usual, _ = execute(tmp_path / "a", ahead=0)
    early, trainer = execute(tmp_path / "b", ahead=6)
    assert len(trainer.waves) == 1
    known = {(row.method, row.metric): row for row in usual.rows if row.metric != "seconds"}
    assert {
        key: (row.value, row.cost)
        for row in early.rows
        if (key := (row.method, row.metric)) in known and row.value == row.value
    } == {key: (row.value, row.cost) for key, row in known.items() if row.value == row.value}


def test_only_single_learners_have_replicates_of_their_own(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text("[methods.extbagging]\nreplicates = 2\n")
    with pytest.raises(PlanError, match=naming("extbagging", "replicates of its own")):
        study.read_study(file)
