"""Tell what kind of tokens a tokenizer makes, as far as a biLM depends on it."""

from typing import Any

from .tokenizers import MECAB, RULES

WORDS = "words between spaces"
MORPHEMES = "morphemes"
# By the names that tokenizers are registered with.
KINDS = {
    RULES: WORDS,
    "spacy.ko.KoreanTokenizer": MORPHEMES,
    MECAB: MORPHEMES,
}
# By the names of their classes: a pipeline's tokenizer can be replaced after its config
# was read.
CLASSES = {
    "Tokenizer": WORDS,
    "KoreanTokenizer": MORPHEMES,
    "MecabTokenizer": MORPHEMES,
}


def find_kind(training: dict[str, Any]) -> str | None:
    """Return the kind of tokens that a biLM was trained on; None if it is not known.

    training (dict[str, Any]): What the biLM says about its training.
    """
    return KINDS.get(str(training.get("tokenizer")))


def find_tokenizer_kind(tokenizer: Any) -> str | None:
    """Return the kind of tokens that a pipeline's tokenizer makes; None if it is not
    known."""
    return CLASSES.get(type(tokenizer).__name__)


def find_doc_kind(doc: Any) -> str | None:
    """Return the kind of tokens that a doc has; None if it is not known. Both Korean
    tokenizers that split words into morphemes store the tags of all of them."""
    return MORPHEMES if "full_tags" in doc.user_data else None
