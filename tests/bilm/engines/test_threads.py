"""Thread counts of torch in our workers and in other threads; `embed` in threads and in
forked processes."""

import multiprocessing
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from helpers.vectors import difference

from spacy_elmo.bilm.engines import cpu, threads


def count_in_a_new_thread():
    """Return torch's thread count in a thread that has not called torch before."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(torch.get_num_threads).result()


def test_each_direction_has_its_share_of_the_threads(two_threads):
    """Check the share after some computing. If each direction used all threads, there
    would be twice as many threads as cores, and they would wait for each other."""
    matrix = torch.ones(600, 600)

    def work():
        matrix.exp().sum()  # large enough for several threads
        (matrix @ matrix).sum()
        return torch.get_num_threads()

    for total, share in [(2, 1), (4, 2), (5, 2), (2, 1)]:
        torch.set_num_threads(total)
        assert threads.side_by_side([work, work], parallel=True) == [share, share]
        assert threads.side_by_side([work, work], parallel=False) == [1, 1]
        assert torch.get_num_threads() == total


@pytest.mark.parametrize("parallel", [True, False])
def test_a_new_thread_has_all_threads_while_tasks_run(two_threads, parallel):
    tasks = [count_in_a_new_thread] * 2
    assert threads.side_by_side(tasks, parallel=parallel) == [2, 2]
    assert count_in_a_new_thread() == 2


@pytest.mark.skipif(
    not threads.own_count_setters(), reason="no thread of this build has its own count"
)
def test_a_new_thread_has_all_threads_while_workers_start(two_threads, monkeypatch):
    """Check a thread that first calls torch just after a worker has set its share."""
    torch.set_num_threads(6)  # no other test uses six, so new workers start here
    counts = []

    def set_and_look(n, original=torch.set_num_threads):
        original(n)
        counts.append(count_in_a_new_thread())

    monkeypatch.setattr(torch, "set_num_threads", set_and_look)
    tasks = [torch.get_num_threads] * 2
    assert threads.side_by_side(tasks, parallel=True) == [3, 3]
    assert set(counts) <= {6}


def test_embed_leaves_the_thread_count(published, sentences):
    published.embed(sentences * 4)
    names = [thread.name for thread in threading.enumerate()]
    assert any(name.startswith("spacy-elmo") for name in names)
    assert torch.get_num_threads() == 2
    assert count_in_a_new_thread() == 2


@pytest.mark.parametrize("parallel_from", [0, 2**60])
@pytest.mark.parametrize("cache_words", [5, 2**15])
def test_embed_from_many_threads(
    tiny, sentences, monkeypatch, two_threads, parallel_from, cache_words
):
    monkeypatch.setattr(cpu, "PARALLEL_FROM", parallel_from)
    expected = [tiny.bilm.embed([sentence])[0] for sentence in sentences]
    tiny.bilm.cache_words = cache_words
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            calls = [[sentence] for sentence in sentences * 4]
            found = [x[0] for x in pool.map(tiny.bilm.embed, calls)]
    finally:
        sys.setswitchinterval(interval)
    assert difference(found, expected * 4) <= 1e-6


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_embed_in_a_forked_process(published, sentences):
    expected = published.embed(sentences * 4)[:20]
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work():
        published.clear_cache()
        sender.send(published.embed(sentences * 4)[:20])

    process = context.Process(target=work, daemon=True)
    process.start()
    try:
        assert receiver.poll(30), "the forked process hangs"
        assert difference(receiver.recv(), expected) <= 1e-5
    finally:
        process.kill()
        process.join()


def test_one_sentence_is_computed_by_one_thread(two_threads, bilm, monkeypatch):
    """Check that small work waits for no second thread, and large work has one."""
    counts = []

    def watch(owner, name):
        original = getattr(owner, name)

        def look(*args, **options):
            counts.append((name, torch.get_num_threads()))
            return original(*args, **options)

        monkeypatch.setattr(owner, name, look)

    watch(cpu, "run_stack")
    watch(cpu.FastCNN, "convolve")
    bilm.embed([["A", "short", "sentence"]])
    assert set(counts) == {("run_stack", 1), ("convolve", 1)}
    assert torch.get_num_threads() == 2
    counts.clear()
    monkeypatch.setattr(cpu, "ENCODE_PARALLEL_FROM", 1)
    bilm.embed([["Other", "words"]])
    assert set(counts) == {("run_stack", 1), ("convolve", 2)}
