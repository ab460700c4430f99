"""Small biLMs and data for the tests of `spacy elmo probe`, `neighbors`, `senses`."""

import json

import numpy as np
import spacy
import torch

from spacy_elmo.analysis.token_index import build_index, index_key
from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig
from spacy_elmo.text.tokenizers import Tokenization

TOKENIZED = Tokenization("xx", None, True)


def make_bilm(seed=0, *, projection_dim=8, lang="xx", tokenizer=None):
    """Make a random biLM whose vectors are about as large as those of a trained one."""
    torch.manual_seed(seed)
    encoder = BytesConfig(char_dim=4, filters=[[1, 8], [2, 12]])
    lstm = LSTMConfig(dim=24, projection_dim=projection_dim)
    training = {"lang": lang, "tokenizer": tokenizer}
    bilm = BiLM(BiLMConfig(encoder, lstm, training=training))
    with torch.no_grad():
        for weight in bilm.parameters():
            if weight.dim() > 1:
                weight.mul_(2.5)
    return bilm


def save(bilm, folder):
    bilm.save(folder)
    return folder


def random_sentences(n, *, seed=0, n_words=12, length=7):
    """Make n sentences of 1 to `length` words."""
    rng = np.random.default_rng(seed)
    words = [a + b for a in "bdgkmt" for b in ("an", "el", "or")][:n_words]
    return [
        [words[k] for k in rng.integers(0, len(words), rng.integers(1, length + 1))]
        for _ in range(n)
    ]


def write(path, sentences):
    """Write sentences to a file, one per line, with a space between words."""
    path.write_text("".join(" ".join(words) + "\n" for words in sentences))
    return path


def make_index(bilm, folder, sentences):
    """Write sentences to folder/text.txt, and build their index in folder/index."""
    folder.mkdir(exist_ok=True)
    path = str(write(folder / "text.txt", sentences))
    key = index_key(bilm, path, TOKENIZED)
    return build_index(bilm, path, TOKENIZED, folder / "index", key)


def cosines(vectors, query):
    """Compute the cosine of each vector, (n, width), with the query, (width,).

    This is done in float64 and as simply as possible, to test faster code against it.
    """
    vectors, query = vectors.astype(np.float64), query.astype(np.float64)
    return vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)


def save_vectors(folder, vectors, lang="xx"):
    """Save a pipeline with word vectors.

    vectors (dict[str, list[float]]): The vector of each word.
    """
    nlp = spacy.blank(lang)
    nlp.vocab.reset_vectors(width=len(next(iter(vectors.values()))))
    for word, vector in vectors.items():
        nlp.vocab.set_vector(word, np.array(vector, dtype=np.float32))
    nlp.to_disk(folder)
    return folder


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def rows_of(task):
    """Map the name of each row in a probe's table to its accuracy."""
    return {row["name"]: row["accuracy"] for row in task["rows"]}
