"""Kill processes that write at random moments, and start two that write the same: what
is there afterwards is complete and right."""

import os
import random
import time
from functools import partial

import pytest
import torch
from helpers.corpora import build
from helpers.forks import fork, kill_at_random, wait
from helpers.full_disk import full_disk
from helpers.pretraining import run_training, write_config, write_text

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig
from spacy_elmo.embedding import embed_file as embed_module
from spacy_elmo.embedding.embed_file import embed_file
from spacy_elmo.pretrain.checkpoints import Checkpoints

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
SENTENCES = [[f"w{n}", "x"] for n in range(40)]
N_TRIALS = 20


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def embed(monkeypatch):
    """Return a function that embeds some sentences in parts of two."""
    monkeypatch.setattr(embed_module, "PART", 2)
    torch.manual_seed(0)
    encoder = BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]])
    bilm = BiLM(BiLMConfig(encoder, LSTMConfig(8, 5)))
    return lambda path: embed_file(bilm, SENTENCES, path, say=lambda said: None)


def timed(work):
    start = time.monotonic()
    work()
    return time.monotonic() - start


@pytest.mark.parametrize("ending", ["hdf5", "parquet"])
@pytest.mark.slow
def test_embed_is_killed(tmp_path, embed, ending):
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    longest = timed(lambda: embed(whole))
    choose = random.Random(0)
    for _ in range(N_TRIALS):
        kill_at_random(lambda: embed(path), choose, longest)
        if path.exists():
            assert path.read_bytes() == whole.read_bytes()
            path.unlink()
    embed(path)
    assert contents(tmp_path).keys() == {whole.name, path.name}
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    "n_trials", [2, pytest.param(N_TRIALS, marks=pytest.mark.slow)]
)
def test_a_corpus_is_killed(tmp_path, n_trials):
    text = write_text(tmp_path / "a.txt")
    longest = timed(lambda: build(tmp_path / "whole", text, dev_share=0.1))
    choose = random.Random(n_trials)

    def work():
        build(tmp_path / "corpus", text, dev_share=0.1)

    for _ in range(n_trials):
        kill_at_random(work, choose, longest)
        meta = tmp_path / "corpus" / "corpus.json"
        if meta.exists():  # make it that of another text
            meta.write_text('{"version": 2, "fingerprint": ""}')
    work()
    assert contents(tmp_path / "corpus") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_that_replaces_another_is_killed(tmp_path):
    config = write_config(tmp_path / "config.cfg", write_text(tmp_path / "text.txt"))
    run = tmp_path / "run"
    run_training(config, run, training__max_steps=3)

    def replace():
        run_training(config, run, overwrite=True, training__max_steps=2)

    longest = timed(replace)
    choose = random.Random(0)
    for _ in range(10):
        kill_at_random(replace, choose, longest)
        said = run_training(config, run, resume=True, training__max_steps=2)
        assert "Continuing from step" in said
        assert Checkpoints(run / "checkpoints").load(pytest.fail) is not None
    names = {"checkpoints", "corpus", "log.jsonl", "model-best", "model-last"}
    assert {path.name for path in run.iterdir()} == names


@pytest.mark.slow
def test_two_write_the_same(tmp_path, embed):
    text = write_text(tmp_path / "a.txt")
    embed(tmp_path / "whole.hdf5")
    build(tmp_path / "whole", text)
    for number in range(N_TRIALS):
        out, corpus = tmp_path / f"{number}.hdf5", tmp_path / str(number)
        for work in (partial(embed, out), partial(build, corpus, text)):
            codes = [wait(child) for child in [fork(work), fork(work)]]
            assert 0 in codes and {*codes} <= {0, 1}
        assert out.read_bytes() == (tmp_path / "whole.hdf5").read_bytes()
        assert contents(corpus) == contents(tmp_path / "whole")


@pytest.mark.parametrize("n_bytes", [0, 1000, 3000, 20_000])
@pytest.mark.slow
def test_a_full_disk_during_a_run(tmp_path, n_bytes):
    config = write_config(tmp_path / "config.cfg", write_text(tmp_path / "text.txt"))
    run_training(config, tmp_path / "whole", training__max_steps=3)
    run = tmp_path / "run"
    with full_disk(n_bytes), pytest.raises(OSError, match="the disk is full"):
        run_training(config, run, training__max_steps=3)
    run_training(config, run, resume=True, training__max_steps=3)
    for name in ("weights.safetensors", "softmax.safetensors"):
        expected = (tmp_path / "whole" / "model-last" / name).read_bytes()
        assert (run / "model-last" / name).read_bytes() == expected
