"""Ensembles that say something else than what was saved, with sound checksums."""

import hashlib
import json
import struct
import zipfile


def unpacked(path):
    """The manifest of a file of dynsnap's own, and its other parts."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(parts.pop("manifest.json")), parts


def packed(path, manifest, parts):
    """Write such a file, with the checksums that its parts have."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    text = json.dumps({**manifest, "sha256": sums})
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**parts, "manifest.json": text}.items():
            archive.writestr(name, content)
    return path


def forged(source, target, **changes):
    """A file whose manifest says something else."""
    manifest, parts = unpacked(source)
    return packed(target, {**manifest, **changes}, parts)


def learners_forged(source, target, changes, manifest=None):
    """An ensemble whose learners all say something else in their headers."""
    known, parts = unpacked(source)
    changed = {name: with_header(content, changes) for name, content in parts.items()}
    return packed(target, {**known, **(manifest or {})}, changed)


def with_header(content, changes):
    """A learner in safetensors with another header of dynsnap's."""
    size = int.from_bytes(content[:8], "little")
    outer = json.loads(content[8 : 8 + size])
    inner = {**json.loads(outer["__metadata__"]["dynsnap"]), **changes}
    outer["__metadata__"]["dynsnap"] = json.dumps(inner)
    text = json.dumps(outer).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]
