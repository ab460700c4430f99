"""Damage files at random, and repeat trials for as long as is asked for."""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path


class Fuzz:
    """The trials of a property test.

    seed (str): Where the random numbers begin, or "SEED/TRIAL" for that trial alone.
    seconds (float): How long to go on; 0 for the number of trials of the test.
    """

    def __init__(self, seed: str, seconds: float) -> None:
        self.seed, _, self.only = seed.partition("/")
        self.seconds = seconds
        self.trial = -1

    def trials(self, n: int) -> Iterator[random.Random]:
        """Yield a random generator for each trial."""
        end = time.monotonic() + self.seconds
        numbers = range(n)
        if self.only:
            numbers = range(int(self.only), int(self.only) + 1)
        elif self.seconds:
            numbers = range(2**40)
        for self.trial in numbers:
            if self.seconds and not self.only and time.monotonic() > end:
                return
            yield random.Random(f"{self.seed}/{self.trial}")

    def __str__(self) -> str:
        return (
            f"trial {self.trial}; this one again: --fuzz-seed {self.seed}/{self.trial}"
        )


def mutate(contents: bytes, rng: random.Random) -> bytes:
    """Damage contents in one of the ways in which files are damaged."""
    data = bytearray(contents)
    size = len(data)
    start = rng.randrange(size + 1)
    length = min(size - start, rng.choice([1, 2, 8, 64, 512, 4096]))
    kind = rng.choice(["flip", "flips", "cut", "zero", "insert", "drop", "copy"])
    if kind == "flip" and start < size:
        data[start] ^= 1 << rng.randrange(8)
    elif kind == "flips":
        for _ in range(min(size, rng.randrange(2, 20))):
            data[rng.randrange(size)] = rng.randrange(256)
    elif kind == "cut":
        del data[start:]
    elif kind == "zero":
        data[start : start + length] = bytes(length)
    elif kind == "insert":
        data[start:start] = rng.randbytes(length + 1)
    elif kind == "drop":
        del data[start : start + length]
    elif kind == "copy":
        source = rng.randrange(size + 1)
        data[start : start + length] = data[source : source + length]
    return bytes(data)


STRANGE = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2.5,
    10**9,
    10**18,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "7",
    "../../etc/passwd",
    [],
    [1],
    {},
    {"a": {}},
]


def mutate_json(contents: bytes, rng: random.Random) -> bytes:
    """Replace or remove one value of a JSON document, or damage its bytes."""
    data = json.loads(contents)
    places = list(_places(data))
    if not places or rng.random() < 0.3:
        return mutate(contents, rng)
    owner, key = rng.choice(places)
    kind = rng.choice(["strange", "swap", "remove", "more"])
    if kind == "swap":
        other, name = rng.choice(places)
        owner[key], other[name] = other[name], owner[key]
    elif kind == "remove":
        del owner[key]
    elif kind == "more" and isinstance(owner, dict):
        owner[rng.choice(["x", "", str(key).upper()])] = rng.choice(STRANGE)
    else:
        owner[key] = rng.choice(STRANGE)
    try:
        return json.dumps(data).encode()
    except ValueError:  # a swap has put a value into itself
        return contents


def _places(data: object) -> Iterator[tuple]:
    """Yield the owner and the key of every value in parsed JSON."""
    if isinstance(data, dict):
        items: list = list(data.items())
    elif isinstance(data, list):
        items = list(enumerate(data))
    else:
        return
    for key, value in items:
        yield data, key
        yield from _places(value)


def damage_file(path: Path, rng: random.Random) -> None:
    """Damage one file in place; JSON also by its values."""
    contents = path.read_bytes()
    change = mutate_json if path.suffix == ".json" else mutate
    path.write_bytes(change(contents, rng))
