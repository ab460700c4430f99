"""Find the nearest contexts of words from Python, as `spacy elmo neighbors` does."""

import warnings
from pathlib import Path
from typing import NamedTuple

from ..bilm import BiLMBase, load_bilm
from ..text.tokenizers import Tokenization, choose_tokenization
from .layer_vectors import layer_names
from .nearest_contexts import choose_layers, find_neighbors
from .neighbor_queries import make_query, tokenize_query
from .token_index import TokenIndex, build_index, index_key, open_index, open_index_of


class Neighbor(NamedTuple):
    """A word in a sentence of the text.

    cosine (float): How similar its vector is to that of the word that was asked for.
    word (str): The word.
    sentence (str): Its sentence, with a space between all words.
    position (int): The position of the word in the sentence, counted from 0.
    """

    cosine: float
    word: str
    sentence: str
    position: int


class Neighbors:
    """The vectors of all words of a text, to search for the nearest contexts of a word.

    `Neighbors.build` makes one from a text and keeps it in a folder, `Neighbors.open`
    opens it again without the text, and `ask` searches.
    """

    def __init__(
        self, bilm: BiLMBase, index: TokenIndex, tokenization: Tokenization
    ) -> None:
        self.bilm = bilm
        self.index = index
        self.tokenization = tokenization
        self._nlp = tokenization.load()

    @classmethod
    def build(
        cls,
        source: str | Path | BiLMBase,
        text: str | Path,
        folder: str | Path,
        *,
        lang: str | None = None,
        tokenizer: str | None = None,
        tokenized: bool = False,
    ) -> "Neighbors":
        """Compute the vectors of all words of a text. If the folder has those of the
        same text and biLM already, they are used.

        source (str | Path | BiLMBase): A biLM, or whatever load_bilm takes.
        text (str | Path): A file, a folder or a pattern, as for the command.
        folder (str | Path): Where the vectors are kept: about 2 kB per word with 3
            layers of width 256.
        lang (str | None): The language of the text; by default that of the biLM.
        tokenizer (str | None): A registered tokenizer; by default that of the biLM.
        tokenized (bool): Whether the text has one sentence per line, with a space
            between all words.
        """
        bilm = _load(source)
        training = bilm.config.training
        tokenization = choose_tokenization(
            training, lang, tokenizer, tokenized, say=_warn
        )
        key = index_key(bilm, str(text), tokenization)
        index = open_index(Path(folder), key)
        if index is None:
            index = build_index(bilm, str(text), tokenization, Path(folder), key)
        return cls(bilm, index, tokenization)

    @classmethod
    def open(cls, source: str | Path | BiLMBase, folder: str | Path) -> "Neighbors":
        """Open the vectors that `build` or the command has kept in a folder.

        source (str | Path | BiLMBase): The biLM that they were made with.
        """
        bilm = _load(source)
        _, index = open_index_of(Path(folder), [bilm])
        return cls(bilm, index, Tokenization(**index.key["tokenization"]))

    def ask(
        self,
        sentence: str,
        word: str,
        *,
        position: int | None = None,
        layer: int | str | None = None,
        top: int = 10,
    ) -> list[Neighbor]:
        """Find the words of the text that are nearest to a word in its sentence.

        position (int | None): The position of the word in the sentence, counted from 0;
            by default the first one at which it occurs.
        layer (int | str | None): The layer to compare: a number, or "mix" for the mean
            of all layers; by default the top layer.
        top (int): How many to find.
        RETURNS (list[Neighbor]): The nearest first.
        """
        if top < 1:
            raise ValueError(f"top is {top}; expected 1 or more")
        names = layer_names(self.bilm)
        if layer is not None and str(layer) not in names:
            raise ValueError(f"layer is {layer!r}; expected one of {', '.join(names)}")
        (chosen,) = choose_layers(names, None if layer is None else str(layer))
        words = tokenize_query(self._nlp, sentence, self.tokenization.tokenized)
        query = make_query(words, word, position)
        (found,) = find_neighbors(
            self.bilm, self.index, [query], layers=[chosen], top=top
        )
        return [Neighbor(**item) for item in found["layers"][0]["neighbors"]]

    def __len__(self) -> int:
        """Return the number of words in the text."""
        return len(self.index.tokens)

    def __repr__(self) -> str:
        return f"<Neighbors: {len(self):,} words in {self.index.folder}>"


def _load(source: str | Path | BiLMBase) -> BiLMBase:
    return source if isinstance(source, BiLMBase) else load_bilm(source)


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)
