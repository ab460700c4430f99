"""The protocol of all workers: a worker stays alive, takes one JSON request per line on
standard input, answers each with one line of JSON on standard output, and computes only
while a request is open.

Needs the standard library and numpy alone, so that it runs in every environment.
"""

import gc
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

Sentences = list[list[str]]
Vectors = list[np.ndarray]  # one (n_layers + 1, n_tokens, width) float32 per sentence


class System(Protocol):
    """A program that turns sentences into the vectors of all its layers.

    `__init__` imports its libraries, so that `load` takes the time of the model alone.
    """

    def load(self, folder: str, **settings: Any) -> None:
        """Read `options.json` and `weights.hdf5` of a folder."""

    def prepare(self) -> None:
        """Prepare a timed call. The preparation itself is not timed."""

    def embed(self, sentences: Sentences, batch: int) -> Vectors:
        """Compute the vectors of sentences, in the order given.

        batch (int): Sentences per batch; 0 for all sentences in one batch.
        """

    def embed_batch(self, sentences: Sentences) -> Vectors:
        """Compute the vectors of one batch, its rows in the order given.

        A program that carries LSTM states continues each row from the state in which
        the same row of the previous batch ended.
        """


def peak_megabytes() -> float:
    """Return the peak memory of this process.

    On Linux, /proc has the peak of this program alone. Other systems have `ru_maxrss`,
    which may include memory of the parent from the time when it started this process.
    """
    if sys.platform == "linux":
        with open("/proc/self/status", encoding="utf8") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def batches(sentences: Sentences, size: int) -> Iterator[Sentences]:
    """Cut a list into batches of at most `size` sentences (0: one batch)."""
    size = size or len(sentences)
    for start in range(0, len(sentences), size):
        yield sentences[start : start + size]


def embed_sorted(
    sentences: Sentences, batch: int, compute: Callable[[Sentences], Vectors]
) -> Vectors:
    """Compute vectors in batches of sentences of similar length, which need little
    padding.

    batch (int): Sentences per batch; 0 for all sentences in one batch.
    compute (Callable): Computes the vectors of one batch.
    RETURNS (Vectors): The vectors, in the order of the input.
    """
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    in_order = [sentences[i] for i in order]
    flat = [array for part in batches(in_order, batch) for array in compute(part)]
    vectors: list[Any] = [None] * len(sentences)
    for i, array in zip(order, flat, strict=True):
        vectors[i] = array
    return vectors


def serve(commands: dict[str, Callable[..., Any]]) -> None:
    """Answer requests until standard input closes.

    A request is `{"command": NAME, ...}`, with the keyword arguments of the command.
    The answer has the seconds that the command took, the memory peak so far, and the
    returned value if it is a number, string or dict. After an error, the answer is
    `{"error": TRACEBACK}`.
    """
    # Libraries that print must not write between the answers: what they send to
    # standard output goes to standard error from here on.
    answers = os.fdopen(os.dup(1), "w", encoding="utf8")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(_answer(commands, json.loads(line))) + "\n")
        answers.flush()


def _answer(
    commands: dict[str, Callable[..., Any]], request: dict[str, Any]
) -> dict[str, Any]:
    """Carry out one request. The time does not include freeing the returned value."""
    command = commands[request.pop("command")]
    gc.collect()
    try:
        start = time.perf_counter()
        value = command(**request)
        seconds = time.perf_counter() - start
    except (Exception, SystemExit):  # a library that exits must not do so silently
        return {"error": traceback.format_exc()}
    plain = value if isinstance(value, (int, float, str, dict)) else None
    return {"seconds": seconds, "peak_mb": peak_megabytes(), "value": plain}


def serve_system(system: System) -> None:
    """Answer the requests that the benchmark sends to a system.

    The request "load" names a JSON file of sentences. Later requests only say how many
    of these sentences to use.
    """
    sentences: Sentences = []

    def load(folder: str, text: str, **settings: Any) -> None:
        with open(text, encoding="utf8") as source:
            sentences[:] = json.load(source)
        system.load(folder, **settings)

    def embed(count: int, batch: int) -> Vectors:
        return system.embed(sentences[:count], batch)

    def save(count: int, path: str) -> None:
        np.savez(path, *system.embed(sentences[:count], 0))

    def save_batch(start: int, count: int, path: str) -> None:
        np.savez(path, *system.embed_batch(sentences[start : start + count]))

    serve(
        {
            "load": load,
            "prepare": system.prepare,
            "embed": embed,
            "save": save,
            "save_batch": save_batch,
        }
    )
