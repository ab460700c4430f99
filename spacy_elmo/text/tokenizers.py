"""Choose and load the tokenizer of a text."""

from collections.abc import Callable
from typing import Any, NamedTuple

import spacy
from spacy.language import Language

from .encodings import UTF8

RULES = "spacy.Tokenizer.v1"  # spaCy's rule-based tokenizer, which needs no package
MECAB = "spacy-elmo.MecabTokenizer.v1"
# What to say if the default tokenizer of a language is unusable.
REMEDIES = {
    "ko": f"for morphemes, pip install 'spacy-elmo[ko]' and choose the tokenizer "
    f"'{MECAB}'"
}


class UnusableTokenizer(ValueError):
    """A tokenizer that cannot be used, mostly because a package is not installed.

    found (str): What is wrong. The message begins with it.
    lang (str): The code of the language.
    """

    def __init__(self, found: str, lang: str) -> None:
        remedy = f" ({REMEDIES[lang]})" if lang in REMEDIES else ""
        super().__init__(
            f"{found}; install what it needs, or choose the tokenizer '{RULES}'{remedy}"
        )
        self.found = found


class Tokenization(NamedTuple):
    """How a text is decoded and divided into words.

    lang (str): The code of a language of spaCy.
    tokenizer (str | None): A registered tokenizer; None for the language's default.
    tokenized (bool): The text is tokenized already: each line is a sentence, with
        spaces between its words. No tokenizer is used.
    encoding (str): The encoding of text files, by a name that Python knows.
    """

    lang: str = "xx"
    tokenizer: str | None = None
    tokenized: bool = False
    encoding: str = UTF8

    def load(self) -> Language:
        """Load a blank pipeline with this tokenizer."""
        return load_language(self.lang, self.tokenizer)

    def or_rules(self, say: Callable[[str], None]) -> "Tokenization":
        """Choose spaCy's rules if the language's default tokenizer is unusable.

        say (Callable[[str], None]): Called with a sentence if rules are chosen.
        RETURNS (Tokenization): One with spaCy's rules, or this one.
        """
        if self.tokenizer is None and not self.tokenized:
            try:
                self.load()
            except UnusableTokenizer as error:
                remedy = REMEDIES.get(self.lang)
                say(
                    f"{error.found}; using '{RULES}' instead"
                    + (f" ({remedy})" if remedy else "")
                )
                return self._replace(tokenizer=RULES)
        return self


def choose_tokenization(
    training: dict[str, Any],
    lang: str | None,
    tokenizer: str | None,
    tokenized: bool = False,
    encoding: str = "utf-8",
    *,
    say: Callable[[str], None],
) -> Tokenization:
    """Choose how to tokenize a text for a biLM.

    By default, use the language and the tokenizer that the biLM was trained with. If
    another language is given without a tokenizer, use the default one of that language.

    training (dict[str, Any]): What the biLM says about its training.
    say (Callable[[str], None]): Called with a sentence if rules must be used instead.
    """
    for key in ("lang", "tokenizer"):
        if not isinstance(training.get(key), str | None):
            raise ValueError(
                f"found training.{key} {training[key]!r} in the config of the biLM; "
                "expected a string"
            )
    is_same_lang = lang in (None, training.get("lang"))
    tokenization = Tokenization(
        lang or training.get("lang") or "xx",
        tokenizer or (training.get("tokenizer") if is_same_lang else None),
        tokenized,
        encoding,
    )
    return tokenization.or_rules(say)


def find_language(lang: str) -> type[Language]:
    """Return spaCy's class of a language, or raise ValueError if there is none.

    lang (str): The code of a language.
    """
    try:
        if "." in lang:  # spaCy would import a module of a language, such as examples
            raise ImportError
        return spacy.util.get_lang_class(lang)
    except (ImportError, AttributeError, ValueError):
        raise ValueError(
            f"found the language '{lang}'; expected one that spaCy supports, or 'xx' "
            "for any language"
        ) from None


def load_language(lang: str, tokenizer: str | None = None) -> Language:
    """Load a blank pipeline.

    lang (str): The code of a language of spaCy.
    tokenizer (str | None): A registered tokenizer; None for the language's default. One
        that cannot be used raises UnusableTokenizer.
    RETURNS (Language): The pipeline. Its tokenizer works: it was tried on a text.
    """
    find_language(lang)
    config = {}
    if tokenizer is not None:
        if not spacy.registry.has("tokenizers", tokenizer):
            raise ValueError(
                f"found the tokenizer '{tokenizer}', which is not registered; expected "
                f"one such as '{RULES}'"
            )
        config = {"nlp": {"tokenizer": {"@tokenizers": tokenizer}}}
    try:
        nlp = spacy.blank(lang, config=config)
        nlp.make_doc("a")  # some tokenizers load a package only now
    except Exception as error:  # each tokenizer raises different errors
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        name = f"of '{lang}'" if tokenizer is None else f"'{tokenizer}'"
        raise UnusableTokenizer(
            f"the tokenizer {name} cannot be used here ({reason})", lang
        ) from None
    return nlp


def load_language_or_rules(lang: str, say: Callable[[str], None]) -> Language:
    """Load a blank pipeline with the language's default tokenizer or, if that is
    unusable (as the Korean one is without mecab), with spaCy's rules.

    say (Callable[[str], None]): Called with a sentence if rules are used instead.
    """
    return Tokenization(lang).or_rules(say).load()
