"""Valid files, and the same files damaged: by bytes, by tokens, and in their structure.

Every mutation takes its decisions from a ``random.Random``. Hypothesis hands one in whose decisions
it can shrink; a long run seeds its own, so that an input is known by its number.
"""

from __future__ import annotations

import copy
import functools
import gzip
import io
import json
import random
from collections.abc import Callable
from typing import Any

from experiment_parts import SMALL
from places import FILES, ROOT
from readings import random_classifier
from softsplit.experiments.spec import shipped_specs
from softsplit.persistence import dumps_model
from tables import hostile, people

DATA = FILES
SPECS = ROOT / "src" / "softsplit" / "experiments" / "specs"

TOKENS = [
    b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"1e-400", b"9" * 50, b"9" * 5000, b"true", b"null",
    b'""', b"[]", b"{}", b"[" * 50, b"[" * 2000, b"{" * 50, b'{"a":' * 2000, b"}", b"]", b",", b";",
    b"\t", b"|", b'"', b"'", b"\n", b"\r", b"\r\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\xff",
    b"\\ud800", b"\\u0000", b"\xf0\x9f\x8c\xb3", b"../../x", b"/etc/passwd", b"os:system", b"!!",
    b"__reduce__", b"__class__", b"py/object", b"pickle", b"import os", b"=cmd()", b"a" * 10_000,
    b"a.a." * 300, b"PAR1", b"\x1f\x8b", b"1979-05-27", b"inf", b"nan", b"?", b"NA", b"1,5",
]  # fmt: skip
"""What has broken parsers before, or would be worth something to an attacker."""

JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**400, 1e308, -1e308, 5e-324, 0.5, 1e-9, "", "a",
    "\0", "\ud800", "a" * 1000, [], {}, [[]], [None], {"pairs": []}, {"a": 1}, [1] * 1000,
    ["a"] * 1000, "native", "quantile", "minmax", "number", "__import__('os')", [[[[[[]]]]]],
]  # fmt: skip


def valid_models() -> list[bytes]:
    stored = [path.read_bytes() for path in sorted(DATA.glob("model-v1-*.json"))]
    made = [
        dumps_model(random_classifier(seed, depth=depth, kind=kind)[0]).encode()
        for seed, (depth, kind) in enumerate([(1, "minmax"), (2, "quantile"), (3, "standard")])
    ]
    return stored + made


def valid_specs() -> list[bytes]:
    own = SMALL.replace('"wine"]', '{name = "own", file = "own.csv", target = "y"}]')
    shipped = [(SPECS / f"{name}.toml").read_bytes() for name in shipped_specs()]
    return [SMALL.encode(), own.encode(), *shipped]


def valid_tables() -> list[bytes]:
    plain = people(20)
    text = plain.to_csv(index=False)
    return [
        text.encode(),
        text.encode("utf-16"),
        text.encode("utf-8-sig"),
        plain.to_csv(index=False, sep=";", decimal=",").encode(),
        plain.to_csv(sep="\t").encode(),
        plain.to_csv(index=False, quoting=1, lineterminator="\r\n").encode(),
        hostile(20).to_csv(index=False).encode(),
        b"a,y\n1,0\n2,1\n?,1\n,0\n",
    ]


def valid_archives() -> list[bytes]:
    return [gzip.compress(content, mtime=0) for content in valid_tables()[:3]]


def valid_parquets() -> list[bytes]:
    made = []
    for compression in (None, "snappy", "gzip"):
        buffer = io.BytesIO()
        people(20).to_parquet(buffer, compression=compression)
        made.append(buffer.getvalue())
    return made


def mutated_bytes(valid: list[bytes], rng: random.Random) -> bytes:
    """One to a few small damages anywhere in a valid file."""
    content = rng.choice(valid)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        content = rng.choice(BYTE_MUTATIONS)(content, valid, rng)
    return content


def _span(content: bytes, rng: random.Random, most: int = 64) -> tuple[int, int]:
    begin = rng.randint(0, len(content))
    return begin, min(len(content), begin + rng.randint(0, most))


def _flip(content: bytes, valid: list[bytes], rng: random.Random) -> bytes:
    if not content:
        return content
    place = rng.randrange(len(content))
    return content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]


def _cut(content: bytes, valid: list[bytes], rng: random.Random) -> bytes:
    begin, end = _span(content, rng)
    return content[:begin] + content[end:]


def _truncate(content: bytes, valid: list[bytes], rng: random.Random) -> bytes:
    return content[: rng.randint(0, len(content))]


def _repeat(content: bytes, valid: list[bytes], rng: random.Random) -> bytes:
    begin, end = _span(content, rng)
    return content[:end] + content[begin:end] * rng.choice([1, 2, 10, 200]) + content[end:]


def _insert(content: bytes, valid: list[bytes], rng: random.Random) -> bytes:
    begin, end = _span(content, rng, 8)
    return content[:begin] + rng.choice(TOKENS) + content[rng.choice([begin, end]) :]


def _splice(content: bytes, valid: list[bytes], rng: random.Random) -> bytes:
    other = rng.choice(valid)
    return content[: rng.randint(0, len(content))] + other[rng.randint(0, len(other)) :]


def _noise(content: bytes, valid: list[bytes], rng: random.Random) -> bytes:
    begin, end = _span(content, rng, 16)
    return content[:begin] + bytes(rng.randrange(256) for _ in range(16)) + content[end:]


BYTE_MUTATIONS: list[Callable[[bytes, list[bytes], random.Random], bytes]] = [
    _flip, _cut, _truncate, _repeat, _insert, _insert, _splice, _noise,
]  # fmt: skip


def mutated_model(valid: list[bytes], rng: random.Random) -> bytes:
    """A model file whose JSON is sound and whose content is not."""
    document = json.loads(rng.choice(valid))
    for _ in range(rng.choice([1, 1, 2, 3])):
        _change_somewhere(document, rng)
    return json.dumps(document).encode()


def _change_somewhere(place: Any, rng: random.Random) -> None:
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.2:
            break
        place = inner
    what = rng.randrange(6)
    if what == 0:
        del place[key]
    elif what == 1 and isinstance(place, list):
        place.extend(place[:] * rng.choice([1, 50]))
    elif what == 2 and isinstance(place, dict):
        place[rng.choice(["extra", "", "__class__", "pairs"])] = copy.deepcopy(rng.choice(JUNK))
    elif what == 3:
        nested: Any = place[key]
        for _ in range(rng.choice([1, 5, 200])):
            nested = [nested]
        place[key] = nested
    elif what == 4 and type(inner) in (int, float) and abs(inner) < 1e300:
        place[key] = inner * rng.choice([-1, 0, 1e-300, 1e300, 1 + 1e-9, 2])
    else:
        place[key] = copy.deepcopy(rng.choice(JUNK))


def mutated_lines(valid: list[bytes], rng: random.Random) -> bytes:
    """A spec or a table with lines moved, doubled and dropped, and values exchanged."""
    lines = rng.choice(valid).splitlines(keepends=True)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not lines:
            break
        place = rng.randrange(len(lines))
        what = rng.randrange(5)
        if what == 0:
            del lines[place]
        elif what == 1:
            lines.insert(rng.randrange(len(lines) + 1), lines[place])
        elif what == 2:
            lines.insert(place, rng.choice(rng.choice(valid).splitlines(keepends=True) or [b""]))
        else:
            lines[place] = _exchanged(lines[place], rng)
    return b"".join(lines)


def _exchanged(line: bytes, rng: random.Random) -> bytes:
    mark = rng.choice([b"=", b",", b";", b"\t", b'"', b" "])
    parts = line.split(mark)
    parts[rng.randrange(len(parts))] = rng.choice(TOKENS)
    return mark.join(parts)


@functools.cache
def _bomb() -> bytes:
    """100 MB in 100 kB."""
    return gzip.compress(b"a,b\n" + b"1,2\n" * 25_000_000, 1, mtime=0)


def mutated_archive(valid: list[bytes], rng: random.Random) -> bytes:
    """A sound archive of a damaged table, or of far too much of one."""
    tables = [gzip.decompress(content) for content in valid]
    if rng.random() < 0.01:
        return _bomb()
    return gzip.compress(mutated_lines(tables, rng), 1, mtime=0)


Mutation = Callable[[list[bytes], random.Random], bytes]

MUTATIONS: dict[str, list[Mutation]] = {
    "model": [mutated_bytes, mutated_model],
    "spec": [mutated_bytes, mutated_lines],
    "csv": [mutated_bytes, mutated_lines],
    "csv.gz": [mutated_bytes, mutated_archive],
    "parquet": [mutated_bytes],
}
VALID = {
    "model": valid_models,
    "spec": valid_specs,
    "csv": valid_tables,
    "csv.gz": valid_archives,
    "parquet": valid_parquets,
}


@functools.cache
def valid_files(kind: str) -> list[bytes]:
    return VALID[kind]()


def mutated_file(kind: str, rng: random.Random) -> bytes:
    """A damaged file of that kind."""
    return rng.choice(MUTATIONS[kind])(valid_files(kind), rng)
