"""Random text, random bytes and damaged text files: the sentences, or one sentence
about what is wrong."""

import gzip
import json

import pytest
from helpers.corpora import build, sentences
from helpers.fuzzing import mutate
from helpers.hostile_text import is_one_sentence, make_text

from spacy_elmo.text.encodings import CANDIDATES, guess_encoding, is_binary
from spacy_elmo.text.sentences import load_sentences
from spacy_elmo.text.tokenizers import RULES, Tokenization

TOKENIZATIONS = [
    Tokenization("en"),
    Tokenization("xx"),
    Tokenization("ko", RULES),
    Tokenization("ko", "spacy-elmo.MecabTokenizer.v1"),
    Tokenization("xx", None, True),
]
ENCODINGS = ["utf-8", "utf-8-sig", "ascii", "utf-7", *CANDIDATES]


def write_random_text(rng, folder):
    """Write random text or bytes to a file of a random kind."""
    suffix = rng.choice((".txt", ".jsonl"))
    if suffix == ".jsonl":
        texts = [make_text(rng, surrogates=True) for _ in range(rng.randrange(1, 9))]
        data = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    else:
        data = make_text(rng).encode(rng.choice(ENCODINGS), "replace")
    kind = rng.randrange(4)
    if kind == 0:
        data = mutate(data, rng)
    elif kind == 1:
        data = rng.randbytes(rng.randrange(2000))
    path = folder / f"a{suffix}"
    if rng.random() < 0.2:
        path = folder / f"a{suffix}.gz"
        data = gzip.compress(data)
        data = mutate(data, rng) if rng.random() < 0.5 else data
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("number", range(len(TOKENIZATIONS)))
@pytest.mark.slow
def test_any_text(fuzz, tmp_path, number):
    for rng in fuzz.trials(20):
        tokenization = TOKENIZATIONS[number]
        if rng.random() < 0.1:  # this loads the tokenizer again, which takes time
            tokenization = tokenization._replace(encoding=rng.choice(ENCODINGS))
        path = write_random_text(rng, tmp_path)
        try:
            found = list(load_sentences([str(path)], tokenization))
        except ValueError as error:
            assert is_one_sentence(error) and str(path) in str(error)
            continue
        finally:
            data = path.read_bytes()
            path.unlink()
        for words in found:
            assert words and all(word and not word.isspace() for word in words)
            "".join(words).encode()  # no half characters
            assert not any("\n" in word or "\r" in word for word in words)
        path.write_bytes(data)
        if found and rng.random() < 0.1:
            corpus, _ = build(tmp_path / "corpus", path, **tokenization._asdict())
            assert sentences(corpus) == found
        path.unlink()


def test_honest_text_with_a_few_broken_lines_is_read(fuzz, tmp_path):
    for rng in fuzz.trials(20):
        n = rng.randrange(10, 300)
        lines = ["눈이 내린다 and snow fell".encode()] * n
        for at in rng.sample(range(n), n // 10):
            lines[at] = rng.randbytes(40).replace(b"\n", b"x")
        path = tmp_path / "a.txt"
        path.write_bytes(b"\n".join(lines))
        found = list(load_sentences([str(path)], Tokenization("xx", None, True)))
        assert len(found) >= n - n // 10


def test_any_bytes_have_an_encoding_or_none(fuzz):
    for rng in fuzz.trials(20):
        data = mutate(make_text(rng).encode(rng.choice(ENCODINGS), "replace"), rng)
        assert guess_encoding(data) in (None, *CANDIDATES)
        assert guess_encoding(rng.randbytes(5000)) is None
        assert is_binary(rng.randbytes(5000))
