"""Build and open an index: a folder with the vectors of all tokens of a text."""

import json
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import spacy

from ..bilm import BiLMBase
from ..bilm.fingerprint import fingerprint
from ..files import (
    OF_DESKTOPS,
    is_temporary,
    one_writer,
    remove_parts,
    write_folder_atomically,
)
from ..fingerprints import (
    checksum_file,
    fingerprint_data,
    fingerprint_files,
    has_checksum,
)
from ..regular_files import read_regular
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

FORMAT = 2
META, WORDS, TOKENS, STARTS = "index.json", "words.json", "tokens.npy", "starts.npy"
# The patterns of all that the folder of an index may have. The graphs are those of
# ApproximateSearch.
GRAPHS = ("layer-*.usearch", "layer-*.usearch.checksum")
KEYS = ("key", "width", "layers")  # of META, in all releases
NAMES = (META, WORDS, TOKENS, STARTS, "layer-*.float16", *GRAPHS, *OF_DESKTOPS)


class TokenIndex:
    """An index that was built completely. If its files do not fit together, a
    ValueError says so.

    folder (Path): The folder of the index.
    meta (dict[str, Any]): The contents of its index.json.

    key (dict[str, Any]): What the index depends on; see `index_key`.
    words (list[str]): The distinct words of the text, in order of appearance.
    tokens (np.ndarray): For each token, the number of its word, (n_tokens,).
    starts (np.ndarray): The number of each sentence's first token, and as the last item
        the number of all tokens, (n_sentences + 1,).
    """

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        self.folder = folder
        self.key: dict[str, Any] = meta["key"]
        self.width: int = meta["width"]
        self.layer_names: list[str] = meta["layers"]
        self.words: list[str] = json.loads(read_regular(folder / WORDS))
        self.tokens: np.ndarray = np.load(folder / TOKENS, mmap_mode="r")
        self.starts: np.ndarray = np.load(folder / STARTS, mmap_mode="r")
        tokens, starts, n = self.tokens, self.starts, len(self.words)
        if not (
            all(isinstance(word, str) for word in self.words)
            and all(
                array.ndim == 1 and array.dtype.kind == "i"
                for array in (tokens, starts)
            )
            and len(tokens) > 0
            and 0 <= tokens.min() <= tokens.max() < n == len(np.unique(tokens))
            and starts[0] == 0
            and starts[-1] == len(tokens)
            and np.all(np.diff(starts) > 0)
        ):
            raise ValueError(f"{folder}: found files that do not fit together")

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


def index_key(bilm: BiLMBase, text: str, tokenization: Tokenization) -> dict[str, Any]:
    """Return everything that an index depends on. If the key that is stored with an
    index is different, the index is out of date."""
    return {
        "format": FORMAT,
        **_identify(bilm),
        "text": fingerprint_text(text),
        "tokenization": tokenization._asdict(),
        "spacy": spacy.__version__,
    }


def _identify(bilm: BiLMBase) -> dict[str, str]:
    """Return the part of a key that depends on the biLM."""
    return {"bilm": fingerprint(bilm), "precision": bilm.precision}


def fingerprint_text(text: str) -> str:
    """Fingerprint the contents of text files. Their names and folders do not
    matter."""
    return fingerprint_files((kind_of(path), path) for path in find_files([text]))


def open_index(
    folder: Path,
    key: dict[str, Any],
    say: Callable[[str], None] = lambda line: None,
) -> TokenIndex | None:
    """Open an index. Return None if there is none with this key, or it is damaged.

    say (Callable[[str], None]): Called with a sentence if it is damaged.
    """
    meta = _read_meta(folder)
    if meta is None:
        return None
    try:
        if "checksum" in meta:  # older releases wrote none
            _check_meta(meta)  # first, because the key may be what is damaged
        return _open_checked(folder, meta) if meta.get("key") == key else None
    except Exception as error:  # numpy raises many kinds of errors
        reason = " ".join(str(error).split()) or type(error).__name__
        say(f"The index in {folder} is damaged and is built again ({reason})")
        return None


def open_index_of(folder: Path, bilms: Sequence[BiLMBase]) -> tuple[int, TokenIndex]:
    """Open an index of any text that was built with one of the given biLMs. Raise
    ValueError if there is none, or if it is damaged.

    RETURNS (tuple[int, TokenIndex]): The number of the biLM, from 0, and the index.
    """
    try:
        index = _open_checked(folder, _read_meta(folder) or {})
        if index.key["format"] != FORMAT:
            raise ValueError("it has another format")
        Tokenization(**index.key["tokenization"])
    except Exception:  # numpy raises many kinds of errors
        raise ValueError(
            f"{folder}: found no complete index; expected a folder that `spacy elmo "
            "neighbors --index` or Neighbors.build has written"
        ) from None
    for number, bilm in enumerate(bilms):
        if _identify(bilm).items() <= index.key.items():
            return number, index
    raise ValueError(
        f"{folder}: found the index of another biLM; expected one that was built with "
        "a biLM that is given here"
    )


def _open_checked(folder: Path, meta: dict[str, Any]) -> TokenIndex:
    """Open an index, or raise an error of any kind if it is damaged."""
    _check_meta(meta)
    checksums = dict(meta["checksums"])
    expected = {WORDS, TOKENS, STARTS}
    expected |= {layer_path(folder, name).name for name in meta["layers"]}
    if set(checksums) != expected:
        raise ValueError(f"{META} names other files")
    for name, checksum in checksums.items():
        if not has_checksum(folder / name, checksum):
            raise ValueError(f"{name} has changed")
    index = TokenIndex(folder, meta)
    size = len(index.tokens) * index.width * np.dtype(np.float16).itemsize
    for name in index.layer_names:
        if layer_path(folder, name).stat().st_size != size:
            raise ValueError(f"layer {name} has another size")
    return index


def _check_meta(meta: dict[str, Any]) -> None:
    """Raise ValueError if the contents of META have changed since they were
    written."""
    if meta.get("checksum") != _checksum_meta(meta):
        raise ValueError(f"{META} has changed")


def _checksum_meta(meta: dict[str, Any]) -> str:
    return fingerprint_data({k: v for k, v in meta.items() if k != "checksum"})


def build_index(
    bilm: BiLMBase,
    text: str,
    tokenization: Tokenization,
    folder: Path,
    key: dict[str, Any],
    progress: Progress = no_progress,
) -> TokenIndex:
    """Build an index. It replaces an older one only when it is complete."""
    _check_target(folder)
    folder = folder.resolve()  # a link stays, and what it leads to is replaced
    folder.parent.mkdir(parents=True, exist_ok=True)
    with one_writer(folder):
        remove_parts(folder.parent, folder.name)  # of a build that was killed
        write_folder_atomically(
            folder,
            lambda part: _write_index(bilm, text, tokenization, part, key, progress),
        )
        return TokenIndex(folder, json.loads(read_regular(folder / META)))


def _check_target(folder: Path) -> None:
    """Raise ValueError if a folder is there that is not an index, or that has files of
    somebody else, because a new index replaces the folder as a whole."""
    if not folder.exists():
        return
    found: list[str] = []
    if folder.is_dir():
        found = [path.name for path in folder.iterdir() if not is_temporary(path.name)]
        if not found:
            return
    if _read_meta(folder) is None:
        raise ValueError(
            f"{folder}: found a folder that is not an index; expected an index, an "
            "empty folder or none"
        )
    for name in sorted(found):
        if not any(fnmatchcase(name, known) for known in NAMES):
            raise ValueError(
                f"{folder}: found {name}, which would be deleted with the index; move "
                "it away, or choose another folder"
            )


def _write_index(
    bilm: BiLMBase,
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
    np.save(folder / TOKENS, np.concatenate(tokens))
    np.save(folder / STARTS, np.cumsum([0, *map(len, tokens)]))
    (folder / WORDS).write_text(json.dumps(list(numbers)), encoding="utf-8")
    files = [folder / WORDS, folder / TOKENS, folder / STARTS]
    files += [layer_path(folder, name) for name in names]
    checksums = {path.name: checksum_file(path) for path in files}
    meta = {"key": key, "width": bilm.config.width, "layers": names}
    meta["checksums"] = checksums
    meta["checksum"] = _checksum_meta(meta)
    (folder / META).write_text(json.dumps(meta), encoding="utf-8")


def _read_meta(folder: Path) -> dict[str, Any] | None:
    """Read META. Return None if it is not that of an index."""
    try:
        meta = json.loads(read_regular(folder / META))
    except (OSError, ValueError, RecursionError):
        return None
    return meta if isinstance(meta, dict) and {*KEYS} <= {*meta} else None
