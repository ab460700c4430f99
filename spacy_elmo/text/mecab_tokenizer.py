"""Tokenize Korean into morphemes with python-mecab-ko, which pip can install."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.lang.ko.tag_map import TAG_MAP
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.symbols import NAMES, POS
from spacy.tokens import Doc
from spacy.training import Example, validate_examples
from spacy.util import DummyTokenizer
from spacy.vocab import Vocab

if TYPE_CHECKING:
    from mecab.types import Morpheme

SPACE_TAG = "_SP"
POS_OF_TAG = {tag: NAMES[attributes[POS]] for tag, attributes in TAG_MAP.items()}


class Piece(NamedTuple):
    """The attributes of a token, before its Doc is made.

    text (str): The text of the token.
    tag (str): The tags of all its morphemes, joined by "+".
    lemma (str): The lemma.
    spacy (bool): Whether a space follows the token.
    """

    text: str
    tag: str
    lemma: str
    spacy: bool = False


def create_mecab_tokenizer() -> Callable[[Language], "MecabTokenizer"]:
    """Create a function that makes a pipeline's tokenizer, as spaCy configs need it."""
    return lambda nlp: MecabTokenizer(nlp.vocab)


class MecabTokenizer(DummyTokenizer):
    """Splits text into the same tokens as spaCy's Korean tokenizer, and sets the same
    tags, parts of speech and lemmas. It differs in two ways: mecab need not be
    installed in the operating system, and `doc.text` always equals the text, because
    whitespace between morphemes becomes a token unless it is a single space.
    """

    def __init__(self, vocab: Vocab) -> None:
        try:
            from mecab import MeCab
        except ImportError:
            raise ImportError(
                "the tokenizer 'spacy-elmo.MecabTokenizer.v1' needs python-mecab-ko: "
                "pip install 'spacy-elmo[ko]'"
            ) from None
        self.vocab = vocab
        self._mecab = MeCab()

    def __reduce__(self) -> tuple[Any, ...]:
        # The objects of mecab cannot be pickled.
        return MecabTokenizer, (self.vocab,)

    def __call__(self, text: str) -> Doc:
        """Split a text into morphemes."""
        pieces: list[Piece] = []
        end = 0
        parsed = text.replace("\0", " ")  # mecab takes NUL for the end of the text
        for morpheme in self._mecab.parse(parsed):
            # The spans of python-mecab-ko are wrong if the text begins with spaces.
            start = parsed.index(morpheme.surface, end)
            _append_gap(pieces, text[end:start])
            end = start + len(morpheme.surface)
            pieces.append(_make_piece(morpheme))
        _append_gap(pieces, text[end:])
        tags = [piece.tag.partition("+")[0] for piece in pieces]
        doc = Doc(
            self.vocab,
            words=[piece.text for piece in pieces],
            spaces=[piece.spacy for piece in pieces],
            tags=tags,
            pos=[_pos(tag) for tag in tags],
            lemmas=[piece.lemma for piece in pieces],
        )
        doc.user_data["full_tags"] = [piece.tag for piece in pieces]
        return doc

    def score(self, examples: list[Example], **kwargs: Any) -> dict[str, Any]:
        """Score the boundaries of tokens."""
        validate_examples(examples, "MecabTokenizer.score")
        return Scorer.score_tokenization(examples)


def _make_piece(morpheme: "Morpheme") -> Piece:
    surface, feature = morpheme.surface, morpheme.feature
    # mecab analyses an inflected form as "stem/tag/*+ending/tag/*".
    stem = (feature.expression or "").partition("/")[0]
    return Piece(surface, feature.pos, stem or surface)


def _append_gap(pieces: list[Piece], gap: str) -> None:
    """Append the whitespace that mecab left out before or after a morpheme. One space
    belongs to the token before it; the rest becomes a token."""
    if gap.startswith(" ") and pieces:
        pieces[-1] = pieces[-1]._replace(spacy=True)
        gap = gap[1:]
    if gap:
        pieces.append(Piece(gap, SPACE_TAG, gap))


def _pos(tag: str) -> str:
    return "SPACE" if tag == SPACE_TAG else POS_OF_TAG.get(tag, "X")
