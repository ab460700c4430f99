"""The vectors of all tokens of a text in a folder, built once."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import spacy
import srsly

from ..bilm import BiLM
from ..bilm.fingerprint import fingerprint
from ..fingerprints import fingerprint_files
from ..text.sentences import load_sentences
from ..text.text_files import find_files, kind_of
from ..text.tokenizers import Tokenization
from .layer_vectors import (
    LayerWriter,
    Tell,
    embed_stream,
    layer_names,
    layer_path,
    map_layer,
    silent,
    unit,
    with_mix,
)

FORMAT = 1
META = "index.json"
BLOCK = 2**20


class Index:
    """An index that is complete.

    words (list[str]): The distinct words of the text, in order of appearance.
    tokens (np.ndarray): The number of each token's word, (n_tokens,).
    starts (np.ndarray): Where sentences begin, and the number of tokens after them,
        (n_sentences + 1,).
    """

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder = folder
        self.width: int = meta["width"]
        self.names: list[str] = meta["layers"]
        self.words: list[str] = srsly.read_json(folder / "words.json")
        self.tokens: np.ndarray = np.load(folder / "tokens.npy", mmap_mode="r")
        self.starts: np.ndarray = np.load(folder / "starts.npy", mmap_mode="r")

    def layer(self, name: str) -> np.ndarray:
        """RETURNS (np.ndarray): Vectors of length 1, (n_tokens, width), float16, on
        disk."""
        return map_layer(self.folder, name, self.width)

    def place(self, row: int) -> tuple[int, int]:
        """RETURNS (tuple[int, int]): The sentence of a token, and where it is in it."""
        sentence = int(np.searchsorted(self.starts, row, "right")) - 1
        return sentence, row - int(self.starts[sentence])

    def sentence(self, number: int) -> list[str]:
        begin, end = self.starts[number : number + 2].tolist()
        return [self.words[word] for word in self.tokens[begin:end].tolist()]


def index_key(bilm: BiLM, text: str, tokenization: Tokenization) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): All that an index depends on."""
    return {
        "format": FORMAT,
        "bilm": fingerprint(bilm),
        "precision": bilm.precision,
        "text": text_fingerprint(text),
        "tokenization": tokenization._asdict(),
        "spacy": spacy.__version__,
    }


def text_fingerprint(text: str) -> str:
    """RETURNS (str): Differs for different contents of files; their names and places
    do not matter."""
    return fingerprint_files((kind_of(path), path) for path in find_files([text]))


def open_index(folder: Path, key: dict[str, Any]) -> Index | None:
    """RETURNS (Index | None): None if there is none, or one of something else."""
    meta = _read_meta(folder)
    if meta is None or meta.get("key") != key:
        return None
    try:
        index = Index(folder, meta)
        sizes = [layer_path(folder, name).stat().st_size for name in index.names]
    except (OSError, ValueError):
        return None
    expected = len(index.tokens) * index.width * np.dtype(np.float16).itemsize
    return index if all(size == expected for size in sizes) else None


def build_index(
    bilm: BiLM,
    text: str,
    tokenization: Tokenization,
    folder: Path,
    key: dict[str, Any],
    tell: Tell = silent,
) -> Index:
    """Write an index in the place of an older one. What is not finished never has the
    folder's name."""
    if folder.exists() and _read_meta(folder) is None and not _is_empty(folder):
        raise ValueError(
            f"{folder}: found something that is no index; expected an index, an empty "
            "folder or nothing"
        )
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        _write(bilm, text, tokenization, part, key, tell)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)
    return Index(folder, srsly.read_json(folder / META))


def _write(
    bilm: BiLM,
    text: str,
    tokenization: Tokenization,
    folder: Path,
    key: dict[str, Any],
    tell: Tell,
) -> None:
    numbers: dict[str, int] = {}
    tokens = []  # of each sentence
    names = layer_names(bilm)
    sentences = load_sentences([text], tokenization)
    with LayerWriter(folder, names) as writer:
        for words, layers in embed_stream(bilm, sentences, list, tell):
            writer.add(unit(with_mix(layers)))
            found = [numbers.setdefault(word, len(numbers)) for word in words]
            tokens.append(np.array(found, dtype=np.int32))
    if not tokens:
        raise ValueError(f"{text}: found no sentences; expected some text")
    np.save(folder / "tokens.npy", np.concatenate(tokens))
    np.save(folder / "starts.npy", np.cumsum([0, *map(len, tokens)]))
    srsly.write_json(folder / "words.json", list(numbers))
    meta = {"key": key, "width": bilm.config.width, "layers": names}
    srsly.write_json(folder / META, meta)


def _read_meta(folder: Path) -> dict[str, Any] | None:
    try:
        meta = srsly.read_json(folder / META)
    except (OSError, ValueError):
        return None
    return meta if isinstance(meta, dict) else None


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())
