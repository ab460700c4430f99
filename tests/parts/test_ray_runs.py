"""On a Ray cluster of several nodes, every row is written once, with the bits of the
plain command, also if workers or nodes are lost."""

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
    """Start a cluster with a node of one core, and connect this process to it."""
    from ray.cluster_utils import Cluster as Nodes

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{ROOT / 'tests'}")
        nodes = Nodes(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False},
        )
        try:
            ray.init(nodes.address, log_to_driver=False, logging_level="error")
            yield nodes
        finally:
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


def test_rows_are_those_of_the_plain_command(nodes, tmp_path):
    """Also if only some parts are missing: then the others are not made again."""
    source, lines = save_bilm(tmp_path / "bilm"), write_lines(tmp_path / "a.txt", 2300)
    plain, out = tmp_path / "plain.parquet", tmp_path / "out"
    args = ["embed", source, lines, out, "--tokenized", "--cluster", "local"]
    done = call(*args, "--workers", 1)
    assert done.exit_code == 0, done.output
    assert "Wrote the vectors of 2,300 sentences" in text(done)
    assert call("embed", source, lines, plain, "--tokenized").exit_code == 0
    assert parquet.read_table(out).equals(parquet.read_table(plain))
    first, second, third = sorted(out.glob("*.parquet"))
    before = second.stat().st_mtime_ns
    first.unlink()
    third.write_bytes(third.read_bytes()[:-9])
    assert call(*args, "--workers", 1).exit_code == 0
    assert second.stat().st_mtime_ns == before
    assert parquet.read_table(out).equals(parquet.read_table(plain))


def test_a_worker_and_a_node_are_lost(nodes, tmp_path, monkeypatch):
    """Kill a worker in the middle of a part, and remove the node of another one."""
    bilm = load_bilm(save_bilm(tmp_path / "bilm"))
    corpus = write_lines(tmp_path / "a.txt", N_SENTENCES)
    load = partial(load_sentences, [str(corpus)], Tokenization(tokenized=True))
    out, plain = tmp_path / "out", tmp_path / "plain.parquet"
    second = nodes.add_node(num_cpus=1)
    nodes.wait_for_nodes(timeout=300)
    maker = WatchedMaker(bilm, tmp_path / "log", 2, kill_at=5 * SIZE)
    told = []

    def remove_once(n_done):
        if not told:
            nodes.remove_node(second, allow_graceful=False)
        told.append(n_done)

    manifest = make_parts(
        maker,
        load,
        out,
        SIZE,
        cluster=Cluster("local", 2),
        problems=Counter(),
        on_progress=remove_once,
    )
    made, processes = maker.made()
    assert made.count(5 * SIZE) >= 2 and len(processes) >= 2
    assert manifest["items"] == told[-1] == N_SENTENCES and len(told) == 20
    monkeypatch.setattr("spacy_elmo.embedding.embed_file.PART", SIZE)
    embed_file(bilm, load(Counter()), plain)
    assert parquet.read_table(out).equals(parquet.read_table(plain))


def test_errors_of_workers_are_one_sentence(nodes, tmp_path):
    source = save_bilm(tmp_path / "bilm")
    (tmp_path / "a.parquet").write_bytes(b"no Parquet")
    args = ["--cluster", "local", "--workers", 1]
    said = refused("embed", source, tmp_path / "a.parquet", tmp_path / "out", *args)
    assert "a.parquet: cannot be read as Parquet" in said and "ray" not in said.lower()
