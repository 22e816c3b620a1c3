import functools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dynsnap.errors import FileError, InputError, PlanError
from dynsnap.train import Features, Pixels, ShiftsAndFlips, Standardised, Words, pool_of, tokenise
from dynsnap.train._identity import identity
from dynsnap.train._preparations import from_header, preparation, to_header
from dynsnap.train._weights import FORMAT, StoredLearner, pack, unpack
from tests.messages import naming
from tests.train.made import blobs, pictures, sentences

TEXTS = np.array(["Red, red fire!", "blue ICE and ice, and ice", "", "Zoë's naïve—plan"], object)


def prepared(prepare, inputs, rows):
    encoded = prepare.encode(inputs)
    bound = prepare.bind(prepare.fit(encoded, np.array(rows)), encoded)
    return prepare.apply(encoded.take(torch.arange(len(inputs))), bound)


def test_pixels_lose_the_mean_of_the_training_rows():
    pool = pictures(channels=3)
    found = prepared(Pixels(), pool.inputs, [0, 4, 5]).numpy()
    expected = pool.inputs / 255 - (pool.inputs[[0, 4, 5]] / 255).mean(axis=0)
    assert np.allclose(found, expected.transpose(0, 3, 1, 2), atol=1e-6)


def test_pictures_without_an_axis_for_channels_get_one():
    assert Pixels().encode(np.zeros((2, 5, 4), np.uint8)).values.shape == (2, 1, 5, 4)


def test_standardised_features_have_mean_0_and_deviation_1_on_the_training_rows():
    inputs = blobs().inputs.copy()
    inputs[:, 2] = 7  # a constant column stays finite
    found = prepared(Standardised(), inputs, range(100)).numpy()[:100]
    assert np.allclose(found.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(np.delete(found.std(axis=0), 2), 1, atol=1e-4)
    assert (found[:, 2] == 0).all()


def test_features_stay_as_they_are():
    inputs = blobs().inputs
    assert np.array_equal(prepared(Features(), inputs, [0]).numpy(), inputs)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        (pictures().inputs, Pixels()),
        (blobs().inputs, Features()),
        (np.zeros((2, 3), np.uint8), Features()),
        (sentences().inputs, Words()),
    ],
)
def test_the_preparation_that_suits_is_found(inputs, expected):
    assert preparation("auto", inputs) == expected


@pytest.mark.parametrize("prepare", [Features(), Standardised(), Pixels(), Words(size=7, length=3)])
def test_a_preparation_survives_being_written_down(prepare):
    assert from_header(to_header(prepare)) == prepare


def test_a_callers_own_preparation_must_be_handed_in_again():
    class Own(Features):
        pass

    assert to_header(Own()) is None
    with pytest.raises(PlanError, match=naming("preparation", "`prepare`")):
        from_header(None)
    with pytest.raises(FileError, match=naming("'sounds'", "Update dynsnap")):
        from_header({"kind": "sounds"})


@pytest.mark.parametrize(
    ("prepare", "inputs", "message"),
    [
        (Features(), TEXTS, naming("Features", "object", "Words")),
        (Pixels(), blobs().inputs, naming("Images", "bytes", "float32", "`Features`")),
        (Words(), blobs().inputs, naming("Texts", "str", "ndarray", "Features`")),
    ],
)
def test_inputs_of_the_wrong_kind_are_refused(prepare, inputs, message):
    with pytest.raises(InputError, match=message):
        prepare.encode(inputs)


def test_words_are_lower_case_and_without_punctuation():
    assert tokenise("Red, red_2 fire!\nX") == ["red", "red_2", "fire", "x"]
    assert tokenise(TEXTS[3]) == ["zoë", "s", "naïve", "plan"]


@given(st.text(max_size=60))
def test_the_fast_cut_of_ascii_text_is_that_of_the_slow_one(text):
    import re

    ascii_only = text.encode("ascii", "replace").decode()
    assert tokenise(ascii_only) == re.findall(r"\w+", ascii_only.lower(), re.ASCII)


def test_tokens_count_from_the_most_frequent_word_and_padding_is_zero():
    tokens = prepared(Words(size=4), TEXTS, [0, 1]).tolist()
    # ice 3, and 2, red 2; `blue` and `fire` are beyond the vocabulary.
    assert tokens[0] == [3, 3, 0, 0, 0, 0]
    assert tokens[1] == [0, 1, 2, 1, 2, 1]
    assert tokens[2] == [0] * 6
    assert tokens[3] == [0] * 6


def test_the_vocabulary_knows_training_texts_only():
    tokens = prepared(Words(), TEXTS, [0])
    assert tokens[1].sum() == 0


def test_the_vocabulary_of_ties_does_not_depend_on_the_order_of_texts():
    words = Words(size=3)
    states = [
        words.fit(words.encode(np.array(texts, object)), np.arange(2))["words"].numpy().tobytes()
        for texts in (["c b", "a"], ["a c", "b"])
    ]
    assert states[0] == states[1] == b"a\nb"


def test_only_the_first_words_of_a_text_count():
    assert prepared(Words(length=2), TEXTS, [0, 1]).shape == (4, 2)


def test_runs_of_words_share_buckets_beyond_the_vocabulary():
    words = Words(size=5, ngrams=2, buckets=50)
    texts = np.array(["a b c", "b c", "c"], object)
    tokens = prepared(words, texts, [0, 1, 2])
    assert tokens.shape == (3, 5)
    runs = [[t for t in row if t >= 5] for row in tokens.tolist()]
    assert [len(row) for row in runs] == [2, 1, 0]
    assert runs[1][0] == runs[0][1]  # `b c` is the same run wherever it stands
    assert tokens.max() < words.offers(words.encode(texts))["words"] == 55


def test_a_data_set_of_empty_texts_gives_padding():
    words = Words()
    encoded = words.encode(np.array(["", "!"], object))
    bound = words.bind(words.fit(encoded, np.arange(2)), encoded)
    assert words.apply(encoded.take(torch.arange(2)), bound).tolist() == [[0], [0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 1}, "`size` of at least 2"),
        ({"length": 0}, naming("`length`", "`ngrams`", "at least 1", "0 and 1")),
        ({"ngrams": 2}, naming("`ngrams`", "`buckets`", "2 and 0")),
        ({"buckets": 9}, naming("`ngrams`", "`buckets`", "1 and 9")),
    ],
)
def test_settings_of_words_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        Words(**settings)


def test_shifts_differ_and_invent_no_values():
    images = torch.arange(16.0).view(1, 1, 4, 4)

    shifted = [
        ShiftsAndFlips(shift=0.25, flip=False)(images, torch.Generator().manual_seed(seed))
        for seed in range(20)
    ]
    low, high = images.min(), images.max()
    assert all(low <= one.min() and one.max() <= high for one in shifted)
    assert len({one.numpy().tobytes() for one in shifted}) == 20


def test_a_shift_is_bilinear_between_pixels(monkeypatch):
    images = torch.arange(16.0).view(1, 1, 4, 4)
    drawn = torch.tensor([[0.5 + 0.25, 0.5, 0.9]])  # half of the largest shift, to the right
    monkeypatch.setattr(torch, "rand", lambda *_, **__: drawn)
    moved = ShiftsAndFlips(shift=0.25)(images, torch.Generator())
    # 0.25 of 4 pixels is the largest shift: here it is half a pixel.
    row = torch.tensor([0.5, 1.5, 2.5, 3.0])
    assert torch.allclose(moved[0, 0, 0], row, atol=1e-5)
    assert torch.allclose(moved[0, 0, 3], row + 12, atol=1e-5)


def test_half_of_the_images_are_mirrored():
    images = torch.arange(4.0).expand(2000, 1, 4, 4).contiguous()
    flipped = ShiftsAndFlips(shift=0.0)(images, torch.Generator().manual_seed(0))
    falling = (flipped[:, 0, 0, 0] > flipped[:, 0, 0, 3]).float().mean().item()
    assert falling == pytest.approx(0.5, abs=0.05)
    expected = torch.where((flipped[:, :, :, :1] > 1), images.flip(3), images)
    assert torch.allclose(flipped, expected, atol=1e-5)


def test_augmentation_of_other_than_images_is_refused():
    with pytest.raises(InputError, match=r"Only images .* \(3, 4\)"):
        ShiftsAndFlips()(torch.zeros(3, 4), torch.Generator())
    with pytest.raises(PlanError, match="`shift` must be"):
        ShiftsAndFlips(shift=1.5)


class Pairs(torch.utils.data.Dataset):
    classes = ("no", "yes")

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def test_a_data_set_becomes_a_pool():
    pool = pool_of(Pairs([(torch.full((3, 4, 4), float(i)), i % 2) for i in range(5)]))
    assert pool.inputs.shape == (5, 3, 4, 4)
    assert pool.labels.tolist() == [0, 1, 0, 1, 0]
    assert pool.classes == ("no", "yes")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], naming("data:", "empty")),
        ([torch.zeros(3)], naming("pairs", "item 0", "Tensor")),
        (
            [(torch.zeros(3), 0), (torch.zeros(4), 1)],
            naming("one shape", "item 1", r"\(4,\)", r"\(3,\)"),
        ),
    ],
)
def test_a_data_set_that_is_no_pool_is_refused(items, message):
    with pytest.raises(InputError, match=message):
        pool_of(Pairs(items))


def test_labels_that_are_no_positions_are_refused():
    with pytest.raises(InputError, match=naming("labels", "whole number", "float64", r"\(2,\)")):
        pool_of(np.zeros((2, 3)), np.array([0.5, 1.0]))


def test_stored_bytes_are_the_same_for_the_same_content():
    state = {"b": torch.ones(2), "a": torch.zeros(3, 1)}
    header = {"x": 1, "y": [1.5, None]}
    assert pack({"one": state}, header) == pack({"one": dict(reversed(state.items()))}, header)
    groups, found = unpack(pack({"one": state}, header), what="It")
    assert found == header
    assert torch.equal(groups["one"]["a"], state["a"])


@given(st.binary(max_size=60), st.integers(0, 300))
def test_damaged_bytes_are_refused_and_never_anything_else(noise, where):
    content = StoredLearner(weights={"w": torch.arange(6.0)}, prepared={}, classes=2).to_bytes()
    damaged = content[:where] + noise + content[where + len(noise) :]
    try:
        StoredLearner.from_bytes(damaged)
    except FileError as error:
        assert "stored learner" in str(error)


def test_a_newer_format_is_named(monkeypatch):
    monkeypatch.setattr("dynsnap.train._weights.FORMAT", FORMAT + 1)
    content = pack({}, {})
    monkeypatch.undo()
    with pytest.raises(FileError, match=naming(f"It has format {FORMAT + 1}", "Update dynsnap")):
        unpack(content, what="It")


def test_identity_tells_code_and_settings_apart_but_not_processes():
    def made(size):
        return lambda classes: nn.Linear(size, classes)

    assert identity(made(3)) == identity(made(3))
    assert identity(made(3)) != identity(made(4))
    assert identity(lambda x: x + 1) != identity(lambda x: x + 2)
    assert identity(functools.partial(nn.Linear, 3)) != identity(functools.partial(nn.Linear, 4))
    assert identity(ShiftsAndFlips(shift=0.1)) != identity(ShiftsAndFlips(shift=0.2))
    assert identity(nn.Sequential(nn.ReLU())) != identity(nn.Sequential(nn.Tanh()))
    assert identity({"a": {1, 2}}) == identity({"a": {2, 1}})


def test_a_thing_without_an_identity_is_refused():
    with pytest.raises(PlanError, match=naming("`__repr__`", "dataclass")):
        identity(object())


def drawn(*shape):
    return np.random.default_rng(0).normal(size=(6, *shape))


def fed(inputs, choice="auto"):
    """What a module is fed with."""
    return prepared(preparation(choice, inputs), inputs, range(len(inputs))).numpy()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_numbers_of_images_are_read_in_either_layout_that_their_shape_tells(channels):
    last = drawn(6, 5, channels).astype(np.float32)
    first = np.ascontiguousarray(last.transpose(0, 3, 1, 2))
    assert (fed(last) == first).all()
    assert (fed(first) == first).all()
    whole = (9 * first).astype(np.int64)
    assert (fed((9 * last).astype(np.int64)) == whole).all()
    assert (fed(whole) == whole).all()


@pytest.mark.parametrize("shape", [(3, 8, 3), (3, 3, 3), (8, 8, 8), (2, 20, 3), (64, 64, 13)])
def test_images_whose_shape_does_not_tell_are_refused_unless_it_is_said(shape):
    inputs = drawn(*shape).astype(np.float32)
    with pytest.raises(
        InputError, match=r'shape \(6, .*prepare="images-nhwc".*prepare="images-nchw"'
    ):
        preparation("auto", inputs)
    assert (fed(inputs, "images") == inputs.transpose(0, 3, 1, 2)).all()
    assert (fed(inputs, "features") == inputs).all()


def test_bytes_with_their_channels_first_are_refused():
    inputs = np.zeros((6, 3, 8, 8), np.uint8)
    with pytest.raises(InputError, match=r"\(6, 3, 8, 8\).*pixels-nchw"):
        preparation("auto", inputs)
    assert fed(inputs.transpose(0, 2, 3, 1)).shape == (6, 3, 8, 8)
    assert fed(inputs, "pixels").shape == (6, 8, 3, 8)


def test_other_numbers_are_features_and_nothing_else_is_images():
    for shape in [(4,), (5, 7), (2, 3, 4, 5)]:
        assert (fed(drawn(*shape)) == drawn(*shape).astype(np.float32)).all()
    with pytest.raises(InputError, match=r"height, width, channels.*\(6, 4\)"):
        fed(drawn(4), "images")
