"""Dicts of arrays, Datasets and DataLoaders, and layouts of images, for torch modules."""

import random

import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler

from dynsnap import DynSnapClassifier
from dynsnap.data import DatasetRows, NamedArrays, drawing_from
from dynsnap.errors import DynSnapError, InputError, PlanError
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
