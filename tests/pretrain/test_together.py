"""Several processes refuse what they do not have in common, and share the work of
preparing a text."""

import os

import pytest
import spacy
import torch
from helpers.corpora import build
from helpers.pretraining import run_training, write_config, write_text
from helpers.ranks import fork_several, say_in_several
from spacy.tokens import DocBin

from spacy_elmo.pretrain.ranks import Ranks
from spacy_elmo.text import chunks, tokenized_chunks

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


@pytest.fixture
def config_path(tmp_path):
    text = write_text(tmp_path / "text.txt", n_documents=60)
    return write_config(tmp_path / "config.cfg", text)


def other_config(config_path, rank):
    return {"training__seed": rank}


def other_size(config_path, rank):
    text = write_text(config_path.with_name("shorter.txt"), n_documents=10)
    return {"paths__raw_text": str(text)} if rank else {}


def other_words(config_path, rank):
    """Name a file with the same name and size and other contents."""
    text = config_path.with_name("text.txt")
    (text.parent / "other").mkdir(exist_ok=True)
    copy = text.parent / "other" / text.name
    copy.write_text(text.read_text("utf8").replace("a", "A"), "utf8")
    return {"paths__raw_text": str(copy)} if rank else {}


def other_path(config_path, rank):
    return {"paths__raw_text": "missing.txt"} if rank else {}


@pytest.mark.parametrize(
    "choose, expected",
    [
        (other_config, "found training.seed = 1; expected 0, as process 0 on"),
        (other_size, "found paths.raw_text = 1 files of "),
        (other_words, "found fingerprint of the text = "),
        (other_path, "missing.txt"),
    ],
)
def test_a_process_that_has_something_else_is_refused(
    config_path, tmp_path, choose, expected
):
    """All processes end with the same sentence; none waits for another."""

    def work(rank):
        settings = choose(config_path, rank)
        return run_training(config_path, tmp_path / "run", **settings)

    first, second = say_in_several(2, work, tmp_path)
    assert first == second and expected in first and "\n" not in first


@pytest.mark.parametrize("given", [False, True], ids=["held out", "given"])
def test_processes_prepare_a_text_together(tmp_path, monkeypatch, given):
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 200)
    text = write_text(tmp_path / "text.txt", n_documents=60)
    nlp = spacy.blank("xx")
    for n in range(3):
        docs = DocBin(docs=[nlp(f"Number {n} {m} is here .") for m in range(4)])
        docs.to_disk(tmp_path / f"{n}.spacy")
    texts = [text, *sorted(tmp_path.glob("*.spacy"))]
    options = {"dev_share": 0.3}
    if given:
        dev = write_text(tmp_path / "dev.txt", n_documents=20, seed=1)
        options = {"dev_text": [str(dev)]}

    def work(rank):
        build(tmp_path / "three", *texts, ranks=Ranks(torch.device("cpu")), **options)
        (tmp_path / f"tokenized-{rank}").write_text(str(n_tokenized))

    n_tokenized = []
    tokenize = tokenized_chunks.tokenize_chunk

    def count(*args):
        n_tokenized.append(1)
        return tokenize(*args)

    monkeypatch.setattr(tokenized_chunks, "tokenize_chunk", count)
    fork_several(work, 3)
    shares = [(tmp_path / f"tokenized-{n}").stat().st_size // 3 for n in range(3)]
    assert max(shares) - min(shares) <= 2 and min(shares) > 3
    build(tmp_path / "one", *texts, **options)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "three" / path.name).read_bytes()
    assert len(list((tmp_path / "one").iterdir())) == len(
        list((tmp_path / "three").iterdir())
    )
