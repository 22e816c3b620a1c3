"""Dicts of arrays, Datasets and DataLoaders, and layouts of images, for torch modules."""

import random
from typing import ClassVar

import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from dynsnap import DynSnapClassifier
from dynsnap.data import DatasetRows, NamedArrays, Pool, Stream, drawing_from
from dynsnap.ensemble import Recipe, RoundSpec, Schedule
from dynsnap.errors import DynSnapError, InputError, PlanError
from dynsnap.train import TorchTrainer
from tests.messages import naming

torch.set_num_threads(1)
RNG = np.random.default_rng(0)
TOKENS = {"input_ids": RNG.integers(1, 10, (80, 5)), "attention_mask": np.ones((80, 5), int)}
WORDS = (TOKENS["input_ids"][:, 0] > 5).astype(int)


class Points(Dataset):
    """Points around two places; `plain` without the noise that each reading draws."""

    def __init__(self, rows=60, noise=0.0):
        self.rows, self.noise, self.read = rows, noise, []
        if noise:
            self.plain = Points(rows)

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        self.read.append(row)
        drawn = torch.rand(4) + random.random() + np.random.rand()
        return torch.full((4,), float(row % 2)) + self.noise * drawn, row % 2


class Tokenised(Dataset):
    """Dicts of tokens of different lengths, as a tokeniser gives them."""

    def __len__(self):
        return 80

    def __getitem__(self, row):
        return {"input_ids": TOKENS["input_ids"][row][: 3 + row % 3], "labels": int(WORDS[row])}


def padded(items):
    longest = max(len(item["input_ids"]) for item in items)
    ids = [[*item["input_ids"], *[0] * (longest - len(item["input_ids"]))] for item in items]
    labels = torch.tensor([item["labels"] for item in items])
    return {
        "input_ids": torch.tensor(ids),
        "attention_mask": torch.tensor(ids) > 0,
        "labels": labels,
    }


class Bags(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.vectors, self.out = nn.Embedding(10, 8), nn.Linear(8, classes)

    def forward(self, input_ids, attention_mask):
        return self.out((self.vectors(input_ids) * attention_mask[..., None]).sum(1))


class Output(nn.Module):
    """Gives its scores as Hugging Face's models do."""

    def __init__(self, classes):
        super().__init__()
        self.bags = Bags(classes)

    def forward(self, **tokens):
        return type("Output", (), {"logits": self.bags(**tokens)})()


def dense(classes, inputs):
    return nn.Sequential(nn.Linear(inputs[0], 8), nn.ReLU(), nn.Linear(8, classes))


def ensemble(model, **settings):
    given = {
        "members": 2,
        "snapshots": 2,
        "epochs": 5,
        "learning_rate": 0.05,
        "batch_size": 16,
        "device": "cpu",
        "random_state": 0,
    }
    return DynSnapClassifier(model, **{**given, **settings})


def part(rows):
    return {name: values[rows] for name, values in TOKENS.items()}


def test_a_dataset_is_read_in_every_epoch_and_without_noise_to_validate(tmp_path):
    data = Points(noise=0.2)
    first = ensemble(dense).fit(data)
    # After a look at the first two, a tenth is validated on and the rest is read five times.
    assert len(set(data.read[2:])) == 54 and len(data.read) > 5 * 54
    assert data.plain.read
    again = ensemble(dense).fit(Points(noise=0.2))
    assert (first.predict_proba(data) == again.predict_proba(data.plain)).all()
    assert first.score(data, np.arange(60) % 2) == 1
    first.save(tmp_path / "points.dynsnap")
    loaded = DynSnapClassifier.load(tmp_path / "points.dynsnap", model=dense)
    assert (loaded.predict_proba(data) == first.predict_proba(data)).all()
    later = loaded.retrain(Points(30), earlier=(data, None))
    assert later.generation_ == 2 and first.retrain(Points(30)).score(Points(8), [0, 1] * 4) == 1


def test_a_loader_gives_its_data_and_how_batches_are_made():
    loader = DataLoader(Tokenised(), batch_size=16, shuffle=True, collate_fn=padded)
    fitted = ensemble(Bags).fit(loader)
    assert fitted.score(loader, WORDS) > 0.6
    assert fitted.predict_proba(loader).shape == (80, 2)


@pytest.mark.parametrize("model", [Bags, Output])
def test_a_dict_reaches_the_module_as_keywords(model, tmp_path):
    fitted = ensemble(model).fit(part(slice(0, 60)), WORDS[:60])
    fitted.save(tmp_path / "tokens.dynsnap")
    loaded = DynSnapClassifier.load(tmp_path / "tokens.dynsnap", model=model)
    assert (loaded.predict_proba(TOKENS) == fitted.predict_proba(TOKENS)).all()
    new = fitted.retrain(part(slice(60, 80)), WORDS[60:])
    assert new.score(TOKENS, WORDS) > 0.6
    with pytest.raises(InputError, match=naming("attention_mask", "input_ids")):
        fitted.predict({"input_ids": TOKENS["input_ids"]})
    with pytest.raises(InputError, match=naming("dict", "Dataset")):
        fitted.predict(TOKENS["input_ids"])


def test_rolling_ensembles_carry_members_of_dicts_over():
    old = ensemble(Bags, method="rolling", members=4).fit(part(slice(0, 60)), WORDS[:60])
    new = old.retrain(part(slice(60, 80)), WORDS[60:])
    assert {member.generation for member in new.members_} == {1, 2}


class NoLength(Dataset):
    def __getitem__(self, row):
        return torch.zeros(4), 0


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(4), 0


class Bare(Points):
    def __getitem__(self, row):
        return torch.zeros(4)


class Counted(Endless):
    def __len__(self):
        return 60


class Torn(Points):
    def __getitem__(self, row):
        if row == 7:
            raise OSError("the disk is gone")
        return super().__getitem__(row)


class Worded(Points):
    def __getitem__(self, row):
        return "a text", row % 2


class Uneven(Points):
    def __init__(self):
        super().__init__(noise=1.0)
        self.plain = Points(7)


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (NoLength(), ["NoLength", "no length", "__len__"]),
        (Endless(), ["Endless", "no length"]),
        (Points(0), ["Points", "no rows"]),
        (Bare(), ["label", "`y`"]),
        (Uneven(), ["60", "7", "plain"]),
        (Tokenised(), ["collate_fn"]),
        (DataLoader(Points(), batch_size=8), ["8", "16", "batch_size"]),
        (
            DataLoader(Points(), sampler=WeightedRandomSampler([1.0] * 60, 60)),
            ["WeightedRandomSampler"],
        ),
        (
            DataLoader(Points(), sampler=RandomSampler(Points(), num_samples=9)),
            ["RandomSampler", "every row"],
        ),
        (DataLoader(Points(), batch_sampler=[[0, 1], [2, 3]]), ["list", "every row"]),
        (DataLoader(Points(), batch_size=16, drop_last=True), ["drop_last"]),
        (Counted(), ["Counted", "IterableDataset"]),
        (Torn(), ["Item 7", "Torn", "disk is gone"]),
        (Worded(), ["str", "tensor"]),
        ({"a": [[1, 2], [3]]}, ["'a'", "Pad"]),
        ({"a": np.zeros((3, 2)), "b": np.zeros((4, 2))}, ["3", "4", "length"]),
        ({"a": np.full((3, 2), np.nan)}, ["'a'", "NaN"]),
        ({"a": ["x", "y"]}, ["'a'", "numbers"]),
        ({}, ["dict"]),
    ],
)
def test_what_cannot_be_trained_on_is_said_at_once(data, named):
    labels = None if isinstance(data, Dataset | DataLoader) else [0, 1, 0]
    with pytest.raises(DynSnapError, match=naming(*named)):
        ensemble(dense).fit(data, labels)


def test_to_predict_a_loader_may_have_batches_of_its_own_and_a_data_set_no_labels():
    fitted = ensemble(dense, epochs=2).fit(Points())
    expected = fitted.predict_proba(Points(9))
    loader = DataLoader(Points(9), batch_size=7, drop_last=True)
    assert (fitted.predict_proba(loader) == expected).all()
    rows = torch.stack([row for row, _ in (Points(9)[at] for at in range(9))])
    assert (fitted.predict_proba(TensorDataset(rows)) == expected).all()


def test_what_a_module_cannot_score_is_said_in_a_line():
    fitted = ensemble(Bags, epochs=2).fit(TOKENS, WORDS)
    with pytest.raises(InputError, match=naming("score", "index")):
        fitted.predict({**TOKENS, "input_ids": TOKENS["input_ids"] + 100})


# --- weights and groups ---------------------------------------------------------------------


def rows_of(kind, rows):
    """Some rows of a kind of inputs, and what learns from them."""
    if kind == "dict":
        return part(rows), WORDS[rows], Bags
    return Subset(Points(80), rows.tolist()), None, dense


ONE = {"method": "singlebase", "members": 1, "snapshots": 1, "epochs": 1}


@pytest.mark.parametrize("kind", ["dict", "data set"])
def test_weights_hold_their_laws(kind):
    every = np.arange(80)
    weights = every % 3 * 1.5
    inputs, labels, model = rows_of(kind, every)
    plain = ensemble(model).fit(inputs, labels).predict_proba(inputs)
    # A row without weight is a row that is not there.
    whole = ensemble(model).fit(inputs, labels, sample_weight=weights).predict_proba(inputs)
    some, their, _ = rows_of(kind, np.flatnonzero(weights))
    left = ensemble(model).fit(some, their, sample_weight=weights[weights > 0])
    assert (whole == left.predict_proba(inputs)).all() and (whole != plain).any()
    # The weight of a class is that of its rows.
    truth = WORDS if kind == "dict" else every % 2
    by_class = ensemble(model, class_weight={0: 5.0}, **ONE).fit(inputs, labels)
    by_row = ensemble(model, **ONE).fit(
        inputs, labels, sample_weight=np.where(truth == 0, 5.0, 1.0)
    )
    assert (by_class.predict_proba(inputs) == by_row.predict_proba(inputs)).all()


class Keyed(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.out = nn.Linear(3, classes)

    def forward(self, values):
        return self.out(values)


@pytest.mark.parametrize("kind", ["dict", "data set"])
def test_a_row_of_weight_three_is_three_rows(kind):
    """With all rows in one step; rows of a class of their own are validated on."""
    repeats = np.arange(24) % 3 + 1
    numbers = np.random.default_rng(5).standard_normal((28, 3)).astype(np.float32)
    truth = np.append(np.arange(24) % 2, [2] * 4)
    recipe = Recipe(schedule=Schedule("constant"), epochs=3, snapshots=1, selection="last")

    def trained(rows, weights):
        values = numbers[rows]
        inputs = (
            NamedArrays({"values": values})
            if kind == "dict"
            else DatasetRows([TensorDataset(torch.from_numpy(values))])
        )
        pool = Pool(
            name=kind,
            inputs=inputs,
            labels=truth[rows],
            classes=("no", "yes", "held out"),
            ids=np.arange(len(rows)),
            weights=weights,
        )
        stream = Stream(
            pool=pool,
            generations=(np.arange(len(rows)),),
            validation=(np.array([0, 0, 4]),),
            evaluation={"test": pool.take(np.arange(len(rows) - 4, len(rows)))},
            late=("held out",),
        )
        trainer = TorchTrainer(
            stream, model=Keyed, device="cpu", batch_size=1000, learning_rate=0.05
        )
        spec = RoundSpec(recipe=recipe, generation=1)
        return next(iter(trainer.train([spec]))).scores["test"]

    every = np.arange(28)
    weighted = trained(every, np.append(repeats, np.ones(4)).astype(float))
    repeated = trained(np.repeat(every, np.append(repeats, np.ones(4, int))), None)
    np.testing.assert_allclose(weighted, repeated, atol=2e-6)
    assert np.abs(weighted - trained(every, None)).max() > 1e-3


class Watched(Bags):
    """Notes the first word of each row that it is trained on."""

    seen: ClassVar[set[int]] = set()

    def forward(self, input_ids, attention_mask):
        if self.training:
            self.seen.update(input_ids[:, 0].tolist())
        return super().forward(input_ids, attention_mask)


def test_no_group_is_cut_in_dicts_and_data_sets():
    groups = RNG.permutation(np.arange(60) // 4)
    data = Points(60, noise=0.1)
    ensemble(dense, **ONE).fit(data, groups=groups)
    trained = sorted(set(data.read[2:]))  # after a look at the first two
    left = np.setdiff1d(np.arange(60), trained)
    assert len(left) and not set(groups[trained]) & set(groups[left])
    # The first word of a text is its group: a group that was cut would be met in training.
    words = RNG.permutation(np.arange(80) % 10)
    tokens = {**TOKENS, "input_ids": np.column_stack([words, TOKENS["input_ids"][:, 1:]])}
    fitted = ensemble(Watched, **ONE)
    fitted.fit(tokens, np.arange(80) % 2, groups=words)
    assert 0 < len(Watched.seen) < 10
    later = fitted.retrain(tokens, np.arange(80) % 2, groups=words)
    assert later.generation_ == 2


def test_weights_do_not_have_validation_read_what_a_data_set_draws():
    data = Points(noise=5.0)
    ensemble(dense, **ONE, selection_metric="log_loss").fit(data, sample_weight=np.arange(60) + 1)
    assert len(set(data.read[2:])) == 54


def test_other_models_and_preparations_refuse_them_by_name():
    with pytest.raises(InputError, match=naming("dict", "LGBMClassifier")):
        DynSnapClassifier(LGBMClassifier(), members=2).fit(TOKENS, WORDS)
    with pytest.raises(PlanError, match=naming("prepare", "standardised", "Dataset")):
        ensemble(dense, prepare="standardised").fit(Points())
    fitted = ensemble(dense).fit(np.eye(4).repeat(9, 0), np.arange(36) % 2)
    with pytest.raises(InputError, match=naming("Points", "shape")):
        fitted.predict(Points())


def test_layouts_are_said_and_mean_the_same():
    def net(classes):
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, classes))

    images = RNG.random((40, 8, 8, 3)).astype(np.float32)
    labels = np.arange(40) % 2
    for kind, last in (("images", images), ("pixels", (images * 255).astype(np.uint8))):
        first = last.transpose(0, 3, 1, 2)
        ones = ensemble(net, prepare=f"{kind}-nhwc", epochs=2).fit(last, labels)
        others = ensemble(net, prepare=f"{kind}-nchw", epochs=2).fit(first, labels)
        assert (ones.predict_proba(last) == others.predict_proba(first)).all()
    with pytest.raises(InputError, match=naming("images-nhwc", "images-nchw")):
        ensemble(net).fit(np.zeros((9, 3, 8, 3)), np.arange(9) % 2)


def test_drawing_leaves_the_generators_of_the_caller_alone():
    def states():
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()

    before = states()
    with drawing_from(3):
        drawn = random.random(), np.random.rand(), torch.rand(1).item()
    assert states() == before
    with drawing_from(3):
        assert (random.random(), np.random.rand(), torch.rand(1).item()) == drawn


def test_rows_of_datasets_and_dicts_join_and_are_told_by_content():
    both = DatasetRows([Points(6)]).join(DatasetRows([Points(4)]))
    assert len(both) == 10 and len(both[np.array([1, 7])]) == 2
    assert list(both[np.array([1, 7])].contents()) == [list(both.contents())[at] for at in (1, 7)]
    named = NamedArrays(TOKENS)
    assert list(named.join(named).contents()) == [*named.contents(), *named.contents()]
    with pytest.raises(InputError, match=naming("attention_mask")):
        named.join(NamedArrays({"input_ids": TOKENS["input_ids"]}))
