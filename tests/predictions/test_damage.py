"""Whatever bytes a file holds, reading gives predictions or one clear line."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynsnap.errors import FileError
from dynsnap.predictions import Predictions, read, write
from tests.messages import naming
from tests.predictions.test_digest import without_digest

SUFFIXES = ["parquet", "arrow", "csv", "csv.gz", "npz"]
FILES = 24 * settings.default.max_examples  # 2,400 in `make test-thorough`


@pytest.fixture(scope="module")
def sound_files(tmp_path_factory):
    """A few small files of every format: (ending, content)."""
    scores = np.random.default_rng(0).dirichlet(np.ones(3), 4).astype(np.float32)
    rich = Predictions(
        ids=["a", "b", "c", "long one"],
        classes=["x", "y", "z"],
        scores=scores,
        truth=[0, 1, 2, 0],
        slices={"hour": [7, 8, None, 7]},
        weights=[1, 2, 3, 0.5],
    )
    plain = Predictions(ids=[5, 6, 9], classes=["x", "y"], labels=[0, 1, 1])
    wide = Predictions(ids=[1], classes=[str(n) for n in range(101)], scores=[[1] + [0] * 100])
    folder = tmp_path_factory.mktemp("sound")
    found = []
    for suffix in SUFFIXES:
        for made in (rich, plain, wide):
            file = folder / f"file.{suffix}"
            write(made, file)
            content = file.read_bytes()
            # Without its digest, too: damage must not get further where nothing tells of it.
            found += [(suffix, content), (suffix, without_digest(content))]
    return found


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


@st.composite
def damage(draw, files):
    """A sound file, broken: cut off, bits flipped, bytes replaced, lost or another's."""
    suffix, content = draw(st.sampled_from(files))
    kind = draw(st.sampled_from(["cut", "flip", "replace", "lose", "ending", "noise", "member"]))
    if kind == "member" and suffix == "npz":
        # Damage that the checksums of the archive do not show.
        members = members_of(content)
        name = draw(st.sampled_from(sorted(members)))
        broken = bytearray(members[name])
        spot = draw(st.integers(0, min(len(broken), 100) - 1))
        broken[spot] = draw(st.sampled_from(b"\x00\xff0123456789<>|=fiUSOV(),':{} "))
        return suffix, archive_of(members | {name: bytes(broken)})
    spot = draw(st.integers(0, len(content) - 1))
    if kind == "cut":
        return suffix, content[:spot]
    if kind == "flip":
        bit = 1 << draw(st.integers(0, 7))
        return suffix, content[:spot] + bytes([content[spot] ^ bit]) + content[spot + 1 :]
    if kind == "replace":
        other = draw(st.binary(min_size=1, max_size=12))
        return suffix, content[:spot] + other + content[spot + len(other) :]
    if kind == "lose":
        return suffix, content[:spot] + content[spot + draw(st.integers(1, 30)) :]
    if kind == "ending":
        return draw(st.sampled_from(SUFFIXES)), content
    return suffix, content[: draw(st.sampled_from([0, 4, 8]))] + draw(st.binary(max_size=60))


@pytest.mark.hypothesis
def test_damaged_files_give_predictions_or_one_clear_line(sound_files, tmp_path):
    thrown = refused = 0

    @settings(max_examples=FILES)
    @given(damage(sound_files))
    def throw(broken):
        nonlocal thrown, refused
        suffix, content = broken
        thrown += 1
        # A new name each time: Arrow files are mapped, and must not change under a mapping.
        file = tmp_path / f"{thrown}.{suffix}"
        file.write_bytes(content)
        try:
            found = read(file)
        except FileError as error:
            refused += 1
            message = str(error)
            assert message.startswith(str(file))
            assert len(message.splitlines()) == 1
            assert len(message) < 1_000
        else:
            assert len(found) == len(found.ids)
        finally:
            file.unlink()

    throw()
    assert thrown >= 0.8 * FILES
    assert refused >= thrown / 2


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickle_inside_an_archive_is_never_loaded(tmp_path):
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)], dtype=object)
    sound = {"id": np.array([1]), "label": np.array(["x"])}
    for name in ("id", "label", "classes", "scores", "slice"):
        file = tmp_path / "file.npz"
        np.savez(file, **(sound | {name: trap}))
        with pytest.raises(
            FileError, match=naming(r"file\.npz", "pickled", "never loaded", "plain arrays")
        ):
            read(file)
    raw = pickle.dumps(Trap(sprung))
    (tmp_path / "raw.npz").write_bytes(raw)
    with pytest.raises(FileError, match=naming(r"raw\.npz", "NPZ")):
        read(tmp_path / "raw.npz")
    (tmp_path / "member.npz").write_bytes(archive_of({"id.npy": raw}))
    with pytest.raises(FileError, match=naming(r"member\.npz", "'id'", "an array")):
        read(tmp_path / "member.npz")
    assert not sprung.exists()


def test_a_single_array_is_told_from_an_archive(tmp_path):
    with (tmp_path / "file.npz").open("wb") as handle:
        np.save(handle, np.zeros(3))
    with pytest.raises(FileError, match=naming(r"file\.npz", "single array", r"`numpy\.savez`")):
        read(tmp_path / "file.npz")
