"""On a Ray cluster of several nodes, every row is written once, with the bits of the
plain command, also if workers or nodes are lost."""

import json
import os
from collections import Counter
from functools import partial

import pytest
from helpers.clusters import WatchedMaker
from helpers.command import call, refused, text
from helpers.pages import ROOT
from helpers.pipelines import save_bilm
from pyarrow import parquet

from spacy_elmo.bilm import load_bilm
from spacy_elmo.embedding.embed_file import embed_file
from spacy_elmo.parts.part_runs import Cluster, make_parts
from spacy_elmo.text.sentences import load_sentences
from spacy_elmo.text.tokenizers import Tokenization

ray = pytest.importorskip("ray", reason="needs the extra 'cluster'")
pytestmark = pytest.mark.slow

N_SENTENCES, SIZE = 160, 8  # 20 parts


@pytest.fixture(scope="module")
def nodes():
    """Start a cluster with a node of two cores, and connect this process to it."""
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests'}")
        nodes = Nodes(
            initialize_head=True,
            head_node_args={"num_cpus": 2, "include_dashboard": False},
        )
        ray.init(nodes.address, log_to_driver=False, logging_level="error")
        yield nodes
        ray.shutdown()
        nodes.shutdown()


def write_lines(path, n):
    words = ["a", "bank", "of", "the", "river", "눈", "x" * 60]
    lines = [
        " ".join(words[(n + k * k) % 7] + str(n % 5) for k in range(1 + n % 9))
        for n in range(n)
    ]
    path.write_text("\n".join(lines) + "\n", "utf8")
    return path


@pytest.fixture
def corpus(tmp_path):
    return write_lines(tmp_path / "a.txt", N_SENTENCES)


@pytest.fixture
def bilm(tmp_path):
    return load_bilm(save_bilm(tmp_path / "bilm"))


def make_load(corpus):
    return partial(load_sentences, [str(corpus)], Tokenization(tokenized=True))


def run(maker, corpus, out, workers=2, on_progress=lambda n: None):
    return make_parts(
        maker,
        make_load(corpus),
        out,
        SIZE,
        cluster=Cluster("local", workers),
        problems=Counter(),
        on_progress=on_progress,
    )


def assert_same_rows(out, bilm, corpus, monkeypatch):
    """Compare the parts of a folder with the file of the plain command."""
    monkeypatch.setattr("spacy_elmo.embedding.embed_file.PART", SIZE)
    plain = out.with_name("plain.parquet")
    embed_file(bilm, make_load(corpus)(Counter()), plain)
    assert parquet.read_table(out).equals(parquet.read_table(plain))


@pytest.mark.parametrize("workers", [1, 2])
def test_rows_are_those_of_the_plain_command(nodes, tmp_path, workers):
    source, lines = save_bilm(tmp_path / "bilm"), write_lines(tmp_path / "a.txt", 2300)
    plain, out = tmp_path / "plain.parquet", tmp_path / "out"
    args = ["--tokenized", "--cluster", "local", "--workers", workers]
    done = call("embed", source, lines, out, *args)
    assert done.exit_code == 0, done.output
    assert "Wrote the vectors of 2,300 sentences" in text(done)
    assert call("embed", source, lines, plain, "--tokenized").exit_code == 0
    assert parquet.read_table(out).equals(parquet.read_table(plain))
    assert len(list(out.glob("*.parquet"))) == 3


def test_a_worker_is_killed(nodes, bilm, corpus, tmp_path, monkeypatch):
    out = tmp_path / "out"
    maker = WatchedMaker(bilm, tmp_path / "log", kill_at=5 * SIZE)
    manifest = run(maker, corpus, out)
    made, processes = maker.made()
    assert made.count(5 * SIZE) == 2 and len(processes) > 2
    assert manifest["items"] == N_SENTENCES
    assert_same_rows(out, bilm, corpus, monkeypatch)
    assert not list(out.glob("*.part"))


def test_a_node_is_removed(nodes, bilm, corpus, tmp_path, monkeypatch):
    second = nodes.add_node(num_cpus=2)
    nodes.wait_for_nodes()
    maker = WatchedMaker(bilm, tmp_path / "log")
    told = []

    def remove_once(n_done):
        if not told:
            nodes.remove_node(second, allow_graceful=False)
        told.append(n_done)

    manifest = run(maker, corpus, tmp_path / "out", 4, remove_once)
    assert len(maker.made()[1]) > 2  # also workers of the second node
    assert manifest["items"] == told[-1] == N_SENTENCES and len(told) == 20
    assert_same_rows(tmp_path / "out", bilm, corpus, monkeypatch)


def test_only_missing_parts_are_computed(nodes, bilm, corpus, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def interrupt(n_done):
        if n_done >= 5 * SIZE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(WatchedMaker(bilm, tmp_path / "log"), corpus, out, on_progress=interrupt)
    lines = (out / "_parts.jsonl").read_text().split("\n")
    noted = sorted(json.loads(line)[1] for line in lines if line)
    assert len(noted) == 5
    damaged = sorted(out.glob("*.parquet"))[noted[0] // SIZE]
    damaged.write_bytes(damaged.read_bytes()[:-9])
    again = WatchedMaker(bilm, tmp_path / "again")
    run(again, corpus, out)
    expected = set(range(0, N_SENTENCES, SIZE)) - set(noted[1:])
    assert again.made()[0] == sorted(expected)
    assert_same_rows(out, bilm, corpus, monkeypatch)


def test_errors_of_workers_are_one_sentence(nodes, tmp_path):
    source = save_bilm(tmp_path / "bilm")
    (tmp_path / "a.parquet").write_bytes(b"no Parquet")
    args = ["--cluster", "local", "--workers", 1]
    for name, sentence in {
        "a.parquet": "a.parquet: cannot be read as Parquet",
        "nowhere.txt": "nowhere.txt: no such file",
    }.items():
        said = refused("embed", source, tmp_path / name, tmp_path / "out", *args)
        assert sentence in said and "ray" not in said.lower()
