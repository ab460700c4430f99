"""Build small corpora for pretraining."""

import gzip
from functools import lru_cache

import numpy as np
import spacy

from spacy_elmo.pretrain.corpus import build_corpus
from spacy_elmo.text.tokenizers import Tokenization


def build(
    folder,
    *texts,
    lang="xx",
    tokenizer=None,
    tokenized=False,
    encoding="utf-8",
    **options,
):
    """Build a corpus from text files. By default it has no dev part."""
    tokenization = Tokenization(lang, tokenizer, tokenized, encoding)
    options = {"dev_share": 0.0, **options}
    return build_corpus(
        list(map(str, texts)), folder, tokenization=tokenization, **options
    )


def sentences(corpus, part="train"):
    tokens = getattr(corpus, part).tokens
    parts = np.split(tokens, np.flatnonzero(tokens == 0))[1:]
    return [[corpus.words[n - 1] for n in part[1:]] for part in parts]


@lru_cache
def pipeline(lang):
    nlp = spacy.blank(lang)
    nlp.add_pipe("sentencizer")
    return nlp


def by_spacy(paragraphs, lang="xx"):
    """Split paragraphs into sentences and words with a simple spaCy pipeline.

    RETURNS (list[list[str]]): The words of each sentence.
    """
    found = []
    for doc in pipeline(lang).pipe(paragraphs):
        for sentence in doc.sents:
            found.append([token.text for token in sentence if not token.is_space])
    return [words for words in found if words]


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    data = data if isinstance(data, bytes) else data.encode()
    path.write_bytes(gzip.compress(data) if path.suffix.lower() == ".gz" else data)
    return path
