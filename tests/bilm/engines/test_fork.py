"""Fork processes while another thread embeds: none of them hangs."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs fork"),
]
# In a process of its own, so that no thread of the tests is there when it forks.
PROGRAM = """
import itertools, sys, threading
import numpy as np, threadpoolctl, torch
sys.path.insert(0, sys.argv[1])
from helpers.forks import fork, wait
from spacy_elmo import load_bilm
from spacy_elmo.bilm.engines import cpu, numpy_engine

for module in (cpu, numpy_engine):
    module.PARALLEL_FROM = module.ENCODE_PARALLEL_FROM = 0
torch.set_num_threads(2)
threadpoolctl.threadpool_limits(2, user_api="blas")
engine, busy_with = sys.argv[2:]
bilm = load_bilm("en_elmo_sm", engine=engine)
sentences = [["A", "fork", "of", "a", "process"], ["Another", "sentence"]]
expected = bilm.embed(sentences)
ended = threading.Event()

def embed():
    for number in itertools.count():
        if ended.is_set():
            return
        if busy_with == "embedder":
            bilm.cache_words = 1000 + number % 2
        elif busy_with == "threads":
            torch.set_num_threads(2 + number % 2)
        words = [f"w{number}-{n}" for n in range(50 if busy_with == "words" else 1)]
        bilm.embed([words, words[:1]])

def embed_too():
    for found, right in zip(bilm.embed(sentences), expected, strict=True):
        if not np.allclose(found, right, atol=1e-4):
            raise OSError("wrong vectors")

thread = threading.Thread(target=embed)
thread.start()
codes = []
while len(codes) < 15 and None not in codes:
    codes.append(wait(fork(embed_too), seconds=20))
ended.set()
thread.join()
print(codes)
"""


@pytest.mark.parametrize(
    ("engine", "busy_with"),
    [
        ("torch", "words"),
        ("torch", "embedder"),
        ("torch", "threads"),
        ("numpy", "words"),
        ("numpy", "embedder"),
    ],
)
def test_no_forked_process_hangs(engine, busy_with):
    """Fork while the thread computes vectors of words, makes an embedder, or starts its
    own threads."""
    tests = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, tests, engine, busy_with],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip() == str([0] * 15), done.stderr
