"""Small files that would need much memory."""

import gzip
import resource
import subprocess
import sys
import zlib

import pytest
from helpers.corpora import build
from spacy.vocab import Vocab

from spacy_elmo.text.doc_files import load_docs

LIMITED = """if True:
    import resource, sys
    from pathlib import Path
    import spacy, torch
    from spacy_elmo.pretrain.corpus import build_corpus
    from spacy_elmo.text.tokenizers import Tokenization
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path, folder = sys.argv[1:]
    try:
        tokenization = Tokenization("en")
        build_corpus([path], Path(folder), tokenization=tokenization, dev_share=0.1)
    except ValueError as error:
        assert "\\n" not in str(error)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def compress(pattern, size):
    """Compress a repeated pattern without holding it in memory."""
    packer = zlib.compressobj(9, wbits=31)
    block = pattern * (2**20 // len(pattern))
    parts = [packer.compress(block) for _ in range(size // len(block))]
    return b"".join([*parts, packer.flush()])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz"])
@pytest.mark.parametrize("pattern", [b"x", b"\0", b" ", b"["])
def test_a_compressed_endless_line_needs_little_memory(tmp_path, name, pattern):
    path = tmp_path / name
    path.write_bytes(compress(pattern, 2**28))
    args = [sys.executable, "-c", LIMITED, path, tmp_path / "corpus"]
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) / 1024 < 400


@pytest.mark.parametrize("name", ["a.spacy", "a.spacy.gz"])
@pytest.mark.slow
def test_docs_that_are_too_large_for_their_file_are_refused(tmp_path, name):
    data = zlib.compress(bytes(2**27), 9)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="more than 67,108,864 bytes of docs"):
        load_docs(path, Vocab())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16


@pytest.mark.parametrize(
    "record",
    [
        '{"text": ' + "[" * 10**6,
        '{"text": "a", "n": ' + "9" * 10**6 + "}",
        '{"text": "a", "n": 1e999999}',
        '{"text": "a", "n": -' + "0" * 10**5 + "}",
        '{"a": ' * 10**5,
    ],
)
def test_hostile_json_is_counted(tmp_path, record):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "good one"}\n' * 20 + record + "\n")
    corpus, _ = build(tmp_path / "corpus", path)
    assert corpus.meta["train"]["n_words"] in (40, 41)
