"""Random models of every kind, to test how they are saved and loaded."""

import json

import numpy as np
import pytest
import torch

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    CharsConfig,
    Lexicon,
    LSTMConfig,
    SoftmaxConfig,
    WordsConfig,
)

SENTENCES = [["나는", "a b", "b" * 60], [], ["\u2028"], ["a", "bad", "Ünk", "", "a"]]
ODD_WORDS = [
    "\u2028",
    "a b",
    "\u3000",
    "\x85",
    "\x1c",
    " ",
    "",
    "\ufeff",
    "'\"\\",
    "나",
]
VOCAB = ["<S>", "</S>", "<UNK>", *ODD_WORDS, "the", "of"]
TRAINING = {"corpus": "한국어 위키", "perplexity": 39.7, "steps": [1, 2], "note": None}
CHARACTERS = [
    "<bos>",
    "<eos>",
    "<oov>",
    "<pad>",
    "<bow>",
    "<eow>",
    *"abd나\u2028\u3000",
]

BYTES = BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]], n_highway=2, max_chars=20)
LSTM = LSTMConfig(dim=7, projection_dim=6, n_layers=2, cell_clip=0.8, proj_clip=0.7)
PLAIN_LSTM = LSTMConfig(
    dim=9,
    projection_dim=9,
    n_layers=1,
    cell_clip=None,
    proj_clip=None,
    skip_connections=False,
    forget_bias=0.5,
    projection=False,
)
ROWS_262 = BytesConfig(
    char_dim=2,
    filters=[[2, 9]],
    n_highway=0,
    activation="tanh",
    n_rows=262,
    n_characters=261,
    projection=True,
)
CNN = {"char_dim": 3, "filters": [[1, 4], [3, 5]], "max_chars": 20}


def numbered(symbols):
    return {symbol: row for row, symbol in enumerate(symbols)}


CHAR_LEXICON = Lexicon(characters=numbered(CHARACTERS))
FULL_LEXICON = Lexicon(numbered(CHARACTERS), numbered(["<oov>", "나는", *ODD_WORDS]))
WORD_LEXICON = Lexicon(words=numbered(VOCAB))

# The configs of encoder, LSTMs and softmax, then the lexicon and the vocabulary.
KINDS = {
    "bytes": (BYTES, LSTM, None, None, None),
    "bytes-262-rows": (ROWS_262, PLAIN_LSTM, None, None, None),
    "bytes-softmax-without-words": (BYTES, LSTM, SoftmaxConfig(7), None, None),
    "bytes-full": (BYTES, LSTM, SoftmaxConfig(len(VOCAB)), None, VOCAB),
    "bytes-sampled": (
        BYTES,
        LSTM,
        SoftmaxConfig(len(VOCAB), type="sampled", n_samples=4),
        None,
        VOCAB,
    ),
    "bytes-adaptive": (
        BYTES,
        LSTM,
        SoftmaxConfig(len(VOCAB), type="adaptive", cutoffs=[2, 8]),
        None,
        VOCAB,
    ),
    "chars-cnn": (CharsConfig(**CNN), LSTM, None, CHAR_LEXICON, None),
    "chars-cnn-words": (
        CharsConfig(word_dim=4, activation="tanh", **CNN),
        LSTM,
        SoftmaxConfig(len(VOCAB)),
        FULL_LEXICON,
        VOCAB,
    ),
    "chars-lstm": (
        CharsConfig(reader="lstm", char_dim=3),
        LSTM,
        None,
        CHAR_LEXICON,
        None,
    ),
    "chars-lstm-words": (
        CharsConfig(reader="lstm", char_dim=3, word_dim=2),
        LSTM,
        None,
        FULL_LEXICON,
        None,
    ),
    "words": (WordsConfig(dim=4), LSTM, None, WORD_LEXICON, None),
    "words-fixed": (
        WordsConfig(dim=5, trainable=False),
        LSTM,
        SoftmaxConfig(len(VOCAB)),
        WORD_LEXICON,
        VOCAB,
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_bilm(kind, seed=0):
    """Make a model of one of the KINDS. Its random weights are large, so that a wrong
    weight changes the vectors."""
    encoder, lstm, softmax, lexicon, vocab = KINDS[kind]
    config = BiLMConfig(encoder, lstm, softmax, TRAINING)
    bilm = BiLM(config, lexicon=lexicon, vocab=vocab).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return bilm


def expected_files(kind):
    _, _, softmax, lexicon, vocab = KINDS[kind]
    files = {"config.json", "weights.safetensors"}
    files |= {"softmax.safetensors"} if softmax else set()
    files |= {"vocab.txt"} if vocab else set()
    return files | ({"lexicon.json"} if lexicon else set())


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_same_model(found, expected):
    """Assert that two biLMs have the same parts and give exactly the same vectors."""
    assert found.config == expected.config
    assert found.lexicon == expected.lexicon
    assert found.vocab == expected.vocab
    found_weights, weights = found.state_dict(), expected.state_dict()
    assert found_weights.keys() == weights.keys()
    for name, tensor in weights.items():
        assert found_weights[name].dtype == torch.float32
        assert torch.equal(found_weights[name], tensor), name
    learned = [name for name, p in expected.named_parameters() if p.requires_grad]
    assert [n for n, p in found.named_parameters() if p.requires_grad] == learned
    for one, other in zip(
        found.embed(SENTENCES), expected.embed(SENTENCES), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def drop_checksums(folder):
    """Make the folder like those of older releases, in which files can be changed."""
    config = load_json(folder / "config.json")
    config.pop("checksums", None)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def load_json(path):
    return json.loads(path.read_text(encoding="utf-8"))
