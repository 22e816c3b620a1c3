"""An ensemble that is pinned by its digest is that file, or is not read at all."""

import hashlib
import re
import zipfile

import numpy as np
import pytest

from dynsnap import DynSnapClassifier, store
from dynsnap.data import digits_stream
from dynsnap.errors import FileError, PlanError
from dynsnap.train.models import mlp
from tests.cli.helpers import dynsnap, refused
from tests.cli.studies import TINY
from tests.messages import naming


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with an ensemble and inputs, and the digest that `train` printed."""
    folder = tmp_path_factory.mktemp("pinned")
    (folder / "study.toml").write_text(TINY)
    ended = dynsnap("train", folder / "study.toml", "--out", folder / "run", "-q")
    assert ended.exit_code == 0, ended.stderr
    np.savez(folder / "new.npz", inputs=digits_stream().evaluation["test"].inputs[:20])
    (digest,) = re.findall(r"sha256 ([0-9a-f]{64})", ended.stdout)
    return folder, folder / "run/ensembles/dynsnap-cyc-g2.ensemble", digest


def arguments(folder, ensemble, *more):
    return ["predict", ensemble, folder / "new.npz", "-o", folder / "x.parquet", *more]


def test_train_prints_the_digest_that_predict_insists_on(trained):
    folder, ensemble, digest = trained
    assert hashlib.sha256(ensemble.read_bytes()).hexdigest() == digest
    for spelled in (digest, digest.upper(), f"sha256:{digest}"):
        ended = dynsnap(*arguments(folder, ensemble, "--sha256", spelled))
        assert ended.exit_code == 0, ended.stderr


def test_another_file_is_refused_before_anything_in_it_is_parsed(trained, monkeypatch):
    folder, ensemble, digest = trained
    other = "0" * 64
    monkeypatch.setattr(zipfile, "ZipFile", None)
    said = refused(*arguments(folder, ensemble, "--sha256", other), code=3)
    assert digest in said
    assert other in said
    with pytest.raises(FileError, match=digest):
        DynSnapClassifier.load(ensemble, sha256=other)


@pytest.mark.parametrize("wrong", ["", "abc", "g" * 64, "0" * 63])
def test_what_is_no_digest_is_wrong_use(trained, wrong):
    folder, ensemble, _ = trained
    said = refused(*arguments(folder, ensemble, "--sha256", wrong), code=2)
    assert "64 hexadecimal digits" in said
    with pytest.raises(PlanError, match="64 hexadecimal digits"):
        store.load_ensemble(ensemble, sha256=wrong)


def test_what_was_digested_is_what_is_parsed(trained, tmp_path, monkeypatch):
    """Whoever exchanges the file after it was digested changes nothing any more."""
    _, ensemble, digest = trained
    file = tmp_path / "x.ensemble"
    file.write_bytes(ensemble.read_bytes())
    real = hashlib.sha256

    def exchanging(content=b"", **more):
        file.write_bytes(b"PK\x03\x04 something else")
        return real(content, **more)

    monkeypatch.setattr(hashlib, "sha256", exchanging)
    found = store.load_ensemble(file, sha256=digest)
    monkeypatch.undo()
    assert found.learners == store.load_ensemble(ensemble).learners
    with pytest.raises(FileError):
        store.load_ensemble(file)


def test_an_estimator_gives_and_takes_its_digest(tmp_path):
    test = digits_stream().evaluation["test"]
    inputs = test.inputs.reshape(len(test), -1).astype(np.float32)
    made = DynSnapClassifier(
        mlp, method="singlebase", epochs=2, snapshots=1, device="cpu", random_state=0
    ).fit(inputs, test.labels)
    digest = made.save(tmp_path / "model")
    assert digest == hashlib.sha256((tmp_path / "model").read_bytes()).hexdigest()
    loaded = DynSnapClassifier.load(tmp_path / "model", model=mlp, sha256=digest)
    assert (loaded.predict(inputs) == made.predict(inputs)).all()
    with pytest.raises(FileError, match=naming("model", digest, "0" * 64)):
        DynSnapClassifier.load(tmp_path / "model", model=mlp, sha256="0" * 64)
