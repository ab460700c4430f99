"""Stop a pretraining by Ctrl-C and other signals, without losing work."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.pretraining import command

from spacy_elmo.pretrain.corpus import Corpus, build_corpus
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain
from spacy_elmo.pretrain.ranks import Ranks
from spacy_elmo.text.tokenizers import Tokenization

FILES = ("weights.safetensors", "softmax.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_saves(config_path, tmp_path, number):
    args = ["pretrain", config_path, "--output", tmp_path / "run", "--resume"]
    args += ["--training.max_steps", 100000, "--training.eval_frequency", 100000]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command(*args), env=env, stdout=subprocess.PIPE, text=True
    )
    log = tmp_path / "run" / "log.jsonl"
    while not log.exists() or log.stat().st_size < 2000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130  # stopped by a signal
    assert "--resume continues from here" in out
    assert len(list((tmp_path / "run" / "checkpoints").glob("step-*"))) == 1


def test_a_signal_at_the_worst_moment_is_not_lost(config_path, tmp_path, monkeypatch):
    real, calls = Ranks.any, []

    def any_of(ranks, flag):
        calls.append(flag)
        if len(calls) == 7:  # got_signal has just been read as False
            signal.raise_signal(signal.SIGINT)
        return real(ranks, flag)

    monkeypatch.setattr(Ranks, "any", any_of)
    config = load_config(config_path, {"training.max_steps": 50})
    assert not pretrain(config, tmp_path / "run", say=lambda text: None)
    assert len(list((tmp_path / "run" / "checkpoints").glob("step-*"))) == 1


# Runs `spacy` with a tokenizer that waits at the first text in each process: it writes
# the file "waiting-PID", and continues when the file "go" exists.
WAITING = """if True:
    import os, signal, time
    from pathlib import Path
    import spacy
    from spacy.cli import setup_cli
    from spacy_elmo.text import chunks, tokenized_chunks, tokenizers

    # In the background of a shell, it would be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chunks.CHUNK_CHARACTERS = 500  # other processes get small texts too
    tokenized_chunks.FEW_CHUNKS = 2

    @spacy.registry.tokenizers("spacy_elmo.waiting.v1")
    def make_tokenizer():
        def create(nlp):
            split = spacy.registry.tokenizers.get(tokenizers.RULES)()(nlp)

            def wait_and_split(text):
                if text != "a":  # with which it is tried
                    Path(f"waiting-{os.getpid()}").touch()
                while text != "a" and not Path("go").exists():
                    time.sleep(0.01)
                return split(text)

            return wait_and_split

        return create

    if __name__ == "__main__":
        setup_cli()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="groups of processes")
@pytest.mark.parametrize("n_process", [1, 2])
def test_ctrl_c_while_the_text_is_read(config_path, tmp_path, n_process):
    (tmp_path / "waiting.py").write_text(WAITING, "utf8")
    args = [sys.executable, "waiting.py", "elmo", "pretrain", config_path]
    args += ["--output", "run", "--corpus.tokenizer", "spacy_elmo.waiting.v1"]
    args += ["--corpus.n_process"]
    options = {
        "cwd": tmp_path,
        "env": {**os.environ, "OMP_NUM_THREADS": "1"},
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "text": True,
    }
    args = list(map(str, args))
    # Ctrl-C in a terminal reaches all processes of the command, so they form a group.
    first = [*args, str(n_process)]
    process = subprocess.Popen(first, start_new_session=True, **options)
    while len(list(tmp_path.glob("waiting-*"))) < n_process:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    (tmp_path / "go").touch()
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 130  # stopped by a signal
    assert "Traceback" not in out
    assert "Run the same command again" in out
    assert not (tmp_path / "run" / "corpus" / "corpus.json").exists()

    done = subprocess.run([*args, "1"], timeout=300, **options)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("Tokenized: ")  # not "Found the tokenized text"
    assert (tmp_path / "run" / "model-last").exists()
    again = Corpus(tmp_path / "run" / "corpus").meta
    whole, _ = build_corpus(
        [str(tmp_path / "text.txt")],
        tmp_path / "whole",
        tokenization=Tokenization("en"),
        dev_share=0.1,
    )
    assert all(again[part] == whole.meta[part] for part in ("train", "dev"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="finds processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_that_tokenize_end_with_their_parent(config_path, tmp_path, number):
    (tmp_path / "waiting.py").write_text(WAITING, "utf8")
    args = [sys.executable, "waiting.py", "elmo", "pretrain", config_path]
    args += ["--output", "run", "--corpus.tokenizer", "spacy_elmo.waiting.v1"]
    args += ["--corpus.n_process", 2]
    process = subprocess.Popen(list(map(str, args)), cwd=tmp_path)
    while len(list(tmp_path.glob("waiting-*"))) < 2:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    process.wait()
    workers = [path.name.split("-")[1] for path in tmp_path.glob("waiting-*")]
    assert str(process.pid) not in workers
    end = time.monotonic() + 30
    while any(Path("/proc", worker).exists() for worker in workers):
        assert time.monotonic() < end, "processes are left"
        time.sleep(0.01)
