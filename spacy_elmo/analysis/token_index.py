"""Build and open an index: a folder with the vectors of all tokens of a text."""

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
from .layer_files import LayerWriter, layer_path, map_layer
from .layer_vectors import (
    Progress,
    add_mix,
    embed_stream,
    layer_names,
    no_progress,
    to_unit_length,
)

FORMAT = 1
META = "index.json"


class TokenIndex:
    """An index that was built completely.

    words (list[str]): The distinct words of the text, in order of appearance.
    tokens (np.ndarray): For each token, the number of its word, (n_tokens,).
    starts (np.ndarray): The number of each sentence's first token, and as the last item
        the number of all tokens, (n_sentences + 1,).
    """

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder = folder
        self.width: int = meta["width"]
        self.layer_names: list[str] = meta["layers"]
        self.words: list[str] = srsly.read_json(folder / "words.json")
        self.tokens: np.ndarray = np.load(folder / "tokens.npy", mmap_mode="r")
        self.starts: np.ndarray = np.load(folder / "starts.npy", mmap_mode="r")

    def get_layer(self, name: str) -> np.ndarray:
        """Memory-map a layer. It has unit vectors, (n_tokens, width), float16."""
        return map_layer(self.folder, name, self.width)

    def locate(self, token: int) -> tuple[int, int]:
        """Return the number of a token's sentence, and the token's position there."""
        sentence = int(np.searchsorted(self.starts, token, "right")) - 1
        return sentence, token - int(self.starts[sentence])

    def get_sentence(self, number: int) -> list[str]:
        begin, end = self.starts[number : number + 2].tolist()
        return [self.words[word] for word in self.tokens[begin:end].tolist()]


def index_key(bilm: BiLM, text: str, tokenization: Tokenization) -> dict[str, Any]:
    """Return everything that an index depends on. If the key that is stored with an
    index is different, the index is out of date."""
    return {
        "format": FORMAT,
        "bilm": fingerprint(bilm),
        "precision": bilm.precision,
        "text": fingerprint_text(text),
        "tokenization": tokenization._asdict(),
        "spacy": spacy.__version__,
    }


def fingerprint_text(text: str) -> str:
    """Fingerprint the contents of text files. Their names and folders do not
    matter."""
    return fingerprint_files((kind_of(path), path) for path in find_files([text]))


def open_index(folder: Path, key: dict[str, Any]) -> TokenIndex | None:
    """Open an index. Return None if there is none with this key, or it is damaged."""
    meta = _read_meta(folder)
    if meta is None or meta.get("key") != key:
        return None
    try:
        index = TokenIndex(folder, meta)
        sizes = [layer_path(folder, name).stat().st_size for name in index.layer_names]
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
    progress: Progress = no_progress,
) -> TokenIndex:
    """Build an index. It replaces an older one only when it is complete."""
    if folder.exists() and _read_meta(folder) is None and not _is_empty(folder):
        raise ValueError(
            f"{folder}: found a folder that is no index; expected an index, an empty "
            "folder or none"
        )
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        _write_index(bilm, text, tokenization, part, key, progress)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)
    return TokenIndex(folder, srsly.read_json(folder / META))


def _write_index(
    bilm: BiLM,
    text: str,
    tokenization: Tokenization,
    folder: Path,
    key: dict[str, Any],
    progress: Progress,
) -> None:
    numbers: dict[str, int] = {}
    tokens = []  # for each sentence an array with the numbers of its words
    names = layer_names(bilm)
    sentences = load_sentences([text], tokenization)
    with LayerWriter(folder, names) as writer:
        for words, layers in embed_stream(bilm, sentences, list, progress):
            writer.add(to_unit_length(add_mix(layers)))
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
