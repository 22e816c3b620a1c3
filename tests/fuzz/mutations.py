"""Ways to break a file: its bytes, its text, or what it says."""

import io
import json
import random
import zipfile
from collections.abc import Mapping
from typing import Any

DEEP = "[" * 3000 + "]" * 3000
LONG = "9" * 5000

# What a cell, a key or a value should not be.
WORDS = (
    "", " ", "NaN", "nan", "inf", "-inf", "1e999", "-1", "0", "0.5", "1e-320", "2", "true", LONG,
    "9223372036854775807", "18446744073709551616", "=1+1", "+1", "-cmd|' /C calc'!A0", "@SUM(A1)",
    "\t=1", "'", '"', '"a","b"', "a\nb", "\x00", "\x1b[31m", "\u202eabc", "é", "é", "😀", "../..",
    "/etc/passwd", "<script>alert(1)</script>", "a" * 3000, "os:system", "%s%n", "{0}", "\ufeffid",
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**40, 0.0, -0.5,
    0.5, 1e308, 1e-320, float("nan"), float("inf"), [], {}, [[]], [None], {"": None}, [0] * 100,
    {"a": {"b": {}}}, *WORDS,
)  # fmt: skip

# Right-hand sides of a line of TOML.
LITERALS = (
    "", "0", "-1", "1", "2", "0.5", "-0.0", "nan", "inf", "-inf", "1e400", "1e-400", LONG, "true",
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1_000_000_000_000",
    '""', '"*"', '"mean"', '"a"', '"\\u0000"', '"=1+1"', '"../../etc"', f'"{"a" * 3000}"', "'''",
    "[]", "[[]]", "[0]", "[1, 2]", "[0.5, 1.0]", "[nan]", '["a", "a"]', "[true]", '["average"]',
    "{}", "{a = 1}", "{a.b.c = 1}", "{0 = 1}", '{kind = "step"}', "{6 = 2}", DEEP,
    "{a=" * 300 + "1" + "}" * 300, "1979-05-27T07:32:00Z", "07:32:00", "1979-05-27", "0x1F",
    '{column = "a", value = [1]}', '"\U0001f600"', "[" + "1," * 5000 + "]",
)  # fmt: skip


def in_bytes(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """Content with some of its bytes flipped, lost, repeated, replaced or moved."""
    spot = rng.randrange(len(content) + 1)
    length = min(rng.choice((1, 2, 4, 8, 30, 300)), len(content))
    kind = rng.choice(("flip", "cut", "lose", "repeat", "replace", "insert", "swap", "noise"))
    if kind == "flip" and content:
        broken = bytearray(content)
        for _ in range(rng.choice((1, 1, 1, 4, 20))):
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        return kind, bytes(broken)
    if kind == "cut":
        return kind, content[:spot]
    if kind == "lose":
        return kind, content[:spot] + content[spot + length :]
    if kind == "repeat":
        return kind, content[: spot + length] + content[spot:]
    if kind == "replace":
        other = rng.choice((b"\x00", b"\xff", b"\x7f", b"9", b'"')) * length
        return kind, content[:spot] + other + content[spot + length :]
    if kind == "swap":
        other_spot = rng.randrange(len(content) + 1)
        return kind, content[:spot] + content[other_spot : other_spot + length] + content[spot:]
    if kind == "noise":
        return kind, content[:spot] + rng.randbytes(length) + content[spot + length :]
    return "insert", content[:spot] + rng.choice(WORDS).encode() + content[spot:]


def in_csv(rng: random.Random, content: str) -> tuple[str, str]:
    """A table with cells, rows or columns that should not be there, or with some missing."""
    rows = [line.split(",") for line in content.splitlines()]
    kind = rng.choice(
        ("cell", "cell", "cell", "head", "row", "lost row", "column", "empty", "quote")
    )
    row = rng.randrange(len(rows))
    column = rng.randrange(len(rows[0]))
    if kind == "cell":
        row = rng.randrange(min(1, len(rows) - 1), len(rows))
        column = min(column, len(rows[row]) - 1)
        rows[row][column] = rng.choice(WORDS)
    elif kind == "head":
        rows[0][column] = rng.choice((*WORDS, *rows[0]))
    elif kind == "row":
        rows.insert(row, rng.choice((rows[row], [rng.choice(WORDS)] * rng.randrange(1, 20))))
    elif kind == "lost row":
        del rows[row]
    elif kind == "column":
        rows = [cells[:column] + cells[column + 1 :] for cells in rows]
    elif kind == "empty":
        rows = rng.choice(([], rows[:1], [[]] * 3))
    else:
        rows[row][min(column, len(rows[row]) - 1)] = '"'
    return f"csv {kind}", "".join(",".join(cells) + "\n" for cells in rows)


def in_toml(rng: random.Random, content: str) -> tuple[str, str]:
    """A TOML file with other values and keys, lines that are lost, repeated or moved."""
    lines = content.splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind = rng.choice(
            ("value", "value", "value", "value", "key", "lost", "twice", "moved", "new")
        )
        at = rng.randrange(len(lines)) if lines else 0
        key, sign, _ = lines[at].partition("=") if lines else ("", "", "")
        if kind == "value":
            assigned = [place for place, line in enumerate(lines) if "=" in line]
            if not assigned:
                continue
            at = rng.choice(assigned)
            key, _, _ = lines[at].partition("=")
            lines[at] = f"{key}= {rng.choice(LITERALS)}"
        elif kind == "key" and sign:
            word = rng.choice(("", "a", "a.b", '""', '"="', "1", key.strip()[:-1], "A" * 300))
            lines[at] = word + lines[at][len(key) :]
        elif kind == "lost" and lines:
            del lines[at]
        elif kind == "twice" and lines:
            lines.insert(at, lines[at])
        elif kind == "moved" and lines:
            lines.insert(rng.randrange(len(lines)), lines.pop(at))
        else:
            lines.insert(
                at,
                rng.choice(
                    (
                        "[",
                        "[a]",
                        "[[rule]]",
                        "[study]",
                        "[methods]",
                        "[data]",
                        "a" + ".a" * 200 + "=1",
                        f"x = {rng.choice(LITERALS)}",
                    )
                ),
            )
    return f"toml {kind}", "\n".join(lines) + "\n"


def in_value(rng: random.Random, found: Any) -> Any:
    """Plain values, as of JSON, with one of them replaced, lost, renamed or added."""
    places = list(_places(found))
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    kind = rng.choice(("replace", "replace", "replace", "lose", "add", "nest"))
    if kind == "lose":
        del holder[key]
    elif kind == "add" and isinstance(holder, dict):
        holder[rng.choice((*WORDS, "extra"))] = rng.choice(VALUES)
    elif kind == "nest":
        deep: Any = holder[key]
        for _ in range(rng.choice((1, 3, 60, 900))):
            deep = rng.choice(([deep], {"a": deep}))
        holder[key] = deep
    else:
        holder[key] = rng.choice(VALUES)
    return found


def in_json(rng: random.Random, content: str) -> tuple[str, str]:
    """A JSON file with a value that should not be there; now and then no JSON at all."""
    if rng.random() < 0.1:
        return "json text", rng.choice((DEEP, LONG, "", "null", '{"a":' * 2000, '"\\ud800"'))
    return "json value", json.dumps(in_value(rng, json.loads(content)))


def in_archive(rng: random.Random, content: bytes) -> tuple[str, bytes]:
    """A zip file with a part that is lost, renamed or broken; its own checksums hold."""
    members = members_of(content)
    name = rng.choice(sorted(members))
    kind = rng.choice(("bytes", "bytes", "header", "lost", "renamed", "text"))
    if kind == "lost":
        del members[name]
    elif kind == "renamed":
        members[rng.choice(("a.npy", "", "../a.npy", name[:-1], "ids.npy"))] = members.pop(name)
    elif kind == "text":
        members[name] = rng.choice(WORDS).encode()
    elif kind == "header" and members[name][:1] == b"\x93":
        broken = bytearray(members[name])
        spot = rng.randrange(min(len(broken), 120))
        broken[spot] = rng.choice(b"\x00\xff0123456789<>|=fiUSOV(),':{} ")
        members[name] = bytes(broken)
    else:
        members[name] = in_bytes(rng, members[name])[1]
    return f"archive {kind}", archive_of(members)


def members_of(content: bytes) -> dict[str, bytes]:
    """The parts of a zip file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members: Mapping[str, bytes]) -> bytes:
    """A zip file of these parts, not compressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


def _places(found: Any) -> Any:
    """Every place in plain values that can be replaced: its holder, and the key or index."""
    keys = (
        found if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()
    )
    for key in list(keys):
        yield found, key
        yield from _places(found[key])
