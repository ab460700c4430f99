"""Small biLMs and data to look at with `spacy elmo probe`, `neighbors`, `senses`."""

import json

import numpy as np
import spacy
import torch

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig


def make_bilm(seed=0, *, projection_dim=8, lang="en"):
    """A random biLM with vectors about as large as a trained one's."""
    torch.manual_seed(seed)
    encoder = BytesConfig(char_dim=4, filters=[[1, 8], [2, 12]])
    lstm = LSTMConfig(dim=24, projection_dim=projection_dim)
    bilm = BiLM(BiLMConfig(encoder, lstm, training={"lang": lang}))
    with torch.no_grad():
        for weight in bilm.parameters():
            if weight.dim() > 1:
                weight.mul_(2.5)
    return bilm


def save(bilm, folder):
    bilm.save(folder)
    return folder


def random_sentences(n, *, seed=0, n_words=12, length=7):
    """RETURNS (list[list[str]]): Of up to `length` words."""
    rng = np.random.default_rng(seed)
    words = [a + b for a in "bdgkmt" for b in ("an", "el", "or")][:n_words]
    return [
        [words[k] for k in rng.integers(0, len(words), rng.integers(1, length + 1))]
        for _ in range(n)
    ]


def cosines(vectors, query):
    """In float64, without any of the shortcuts."""
    vectors, query = vectors.astype(np.float64), query.astype(np.float64)
    return vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)


def save_vectors(folder, vectors):
    """A pipeline with word vectors.

    vectors (dict[str, list[float]])
    """
    nlp = spacy.blank("en")
    nlp.vocab.reset_vectors(width=len(next(iter(vectors.values()))))
    for word, vector in vectors.items():
        nlp.vocab.set_vector(word, np.array(vector, dtype=np.float32))
    nlp.to_disk(folder)
    return folder


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def rows_of(task):
    """RETURNS (dict): The accuracy of each row of a probe's table."""
    return {row["name"]: row["accuracy"] for row in task["rows"]}
