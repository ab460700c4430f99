"""Text that is damaged, and text that is very long."""

import gzip
import json
import subprocess
import sys

import pytest
from helpers.corpora import build, sentences, write
from helpers.pretraining import write_text

from spacy_elmo.text.paragraphs import MAX_RUN
from spacy_elmo.text.problems import say_problems

GOOD = b"good words\n" * 99
MANY = (b"some words " * 500 + b"\n") * 400
JSON = b'{"text": "good one"}\n'


def told(corpus):
    """Return the message about the text that a user sees."""
    said = []
    say_problems(corpus.problems, said.append)
    return "\n".join(said)


@pytest.mark.parametrize(
    "name, data, trouble, n_words",
    [
        ("a.txt", b"good\n\xff\xfebad\none\n", "1 lines with invalid UTF-8", 4),
        ("a.txt", b"a\0b one\0\n\0\0\n", "2 lines with NUL characters", 2),
        ("a.txt", b"\n\n\ngood\n\n\none\n\n", "4 superfluous empty lines", 2),
        ("a.txt", b"word " * 700_000, "1 lines that were too long", 700_000),
        (
            "a.txt",
            b"x" * 3 * 2**20 + b"\ny\n",
            "1 lines that were too long",
            None,
        ),
        ("a.txt", "눈".encode() * 2**20, "1 lines that were too long", None),
        ("a.txt", b"\x80" * 3 * 2**20, "lines with invalid UTF-8", None),
        ("a.jsonl", JSON + b"{\n[1]\n3\n" + JSON, "3 lines that are not JSON", 4),
        ("a.jsonl", b'{"text": 3}\n{}\n' + JSON, "2 lines that are not JSON", 2),
        (
            "a.jsonl",
            b'{"text": "a\\u0000b"}\n' + JSON,
            "1 lines with NUL",
            3,
        ),
        ("a.txt.gz", gzip.compress(MANY)[:-5], "1 files that end too early", 400_000),
        ("a.txt.gz", gzip.compress(MANY, 0)[:-9], "1 files that end too early", None),
        ("a.txt.gz", gzip.compress(GOOD)[:-4], "1 files that end too early", 198),
        ("a.txt.gz", gzip.compress(GOOD) + b"x", "1 files that end too early", 198),
        ("a.jsonl.gz", gzip.compress(JSON)[:-4], "1 files that end too early", 2),
        ("a.txt", b"one two\rthree\r\n", "1 lines with a carriage return", 3),
    ],
)
def test_rough_text_is_counted_and_read(tmp_path, name, data, trouble, n_words):
    path = tmp_path / name
    path.write_bytes(data)  # `write` would compress a .gz file
    good = write(tmp_path / "good.txt", GOOD + b"one more\n")
    corpus, _ = build(tmp_path / "corpus", path, good)
    assert trouble in told(corpus)
    assert sentences(corpus)[-1] == ["one", "more"]
    if n_words is not None:
        assert corpus.meta["train"]["n_words"] == n_words + 200


def test_text_that_is_only_named_gz_is_refused(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(GOOD)
    with pytest.raises(ValueError, match=f"^{path}: found no gzip file"):
        build(tmp_path / "corpus", path)


def test_byte_order_marks_of_joined_files_are_removed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\n\ufefftwo\n".encode())
    corpus, _ = build(tmp_path / "corpus", path)
    assert sentences(corpus) == [["one"], ["two"]]


def test_json_may_have_numbers_of_any_size(tmp_path):
    path = write(
        tmp_path / "a.jsonl", '{"text": "good one", "id": 123456789%s}' % ("0" * 30)
    )
    corpus, _ = build(tmp_path / "corpus", path)
    assert told(corpus) == ""
    assert sentences(corpus) == [["good", "one"]]


def test_clean_text_has_no_problems(tmp_path):
    corpus, _ = build(tmp_path / "corpus", write_text(tmp_path / "a.txt"))
    assert told(corpus) == ""


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.slow
def test_endless_lines_lose_nothing(tmp_path, space):
    text = f"눈{space}은하{space}" * 500_000
    corpus, _ = build(tmp_path / "corpus", write(tmp_path / "a.txt", text), lang="xx")
    words = [word for words in sentences(corpus) for word in words]
    assert "".join(words) == text.replace(" ", "")
    if space:
        assert set(words) == {"눈", "은하"}
    else:
        assert max(map(len, words)) == MAX_RUN


def test_long_documents_of_json_are_whole(tmp_path):
    line = json.dumps({"text": "a word. " * 200_000})
    corpus, _ = build(tmp_path / "corpus", write(tmp_path / "a.jsonl", line))
    assert corpus.meta["train"]["n_words"] == 600_000
    assert corpus.meta["train"]["n_documents"] == 1


@pytest.mark.slow
def test_memory_does_not_grow_with_the_text(tmp_path):
    code = """if True:
        import resource, sys
        from pathlib import Path
        from spacy_elmo.text import chunks, paragraphs
        from spacy_elmo.pretrain.corpus import build_corpus
        from spacy_elmo.text.tokenizers import Tokenization
        # What is held at a time is little, to see what else is.
        paragraphs.BLOCK, chunks.CHUNK_CHARACTERS = 2**16, 2**15
        path, folder = sys.argv[1:]
        tokenization = Tokenization("en")
        build_corpus([path], Path(folder), tokenization=tokenization, dev_share=0.1)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    part = "".join(
        " ".join(f"w{(7 * n + 13 * k) % 3001}" for k in range(50)) + ".\n\n"
        for n in range(2000)
    )
    peaks = []
    for n in (1, 8):
        path = write(tmp_path / f"{n}.txt", part * n)
        args = [sys.executable, "-c", code, path, tmp_path / str(n)]
        done = subprocess.run(args, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) / 1024)
    # The longer text has 700,000 more words: 2.8 MB as numbers, 4 MB as text.
    assert peaks[1] - peaks[0] < 1.5, peaks
