"""Load and save the native folder. It has config.json and weights.safetensors, and may
have softmax.safetensors with vocab.txt (to use the model as a language model) and
lexicon.json (if the encoder has a lexicon). The config has checksums of all files."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...files import write_atomically
from ...fingerprints import Checksum, checksum_bytes, checksum_file
from ..config import BiLMConfig
from ..data import SOFTMAX as SOFTMAX_PREFIX
from ..data import BiLMData, without_softmax
from ..errors import SourceError
from ..lexicon import Lexicon
from ..shapes import iterate_shapes
from .build import build
from .quantize import STORED, quantize
from .replacement import ModelFiles
from .small_files import (
    MAX_BYTES,
    check_file,
    read_json,
    read_vocab,
    write_json,
    write_vocab,
)
from .tensors import arrays_from_bytes, arrays_to_bytes, load_arrays, save_arrays

FORMAT = "spacy-elmo"
VERSION = 1
CONFIG, WEIGHTS, LEXICON = "config.json", "weights.safetensors", "lexicon.json"
SOFTMAX, VOCAB = "softmax.safetensors", "vocab.txt"
CHECKSUMS = "checksums"


def _is_config(data: Any) -> bool:
    return isinstance(data, dict) and data.get("format") == FORMAT


FILES = ModelFiles(
    WEIGHTS, (SOFTMAX, VOCAB, LEXICON), CONFIG, "spacy-elmo-new", _is_config
)


def is_native(folder: Path) -> bool:
    return FILES.path(folder, WEIGHTS).exists()


def load_native(folder: Path) -> BiLMData:
    files = _Files(folder)
    config = _parse_config(files.path(CONFIG), files.config)
    files.check_config()
    # A list of words is never much larger than the weights of these words.
    max_bytes = MAX_BYTES + files.size(WEIGHTS)
    lexicon = Lexicon()
    if files.has(LEXICON):
        symbols = read_json(files.path(LEXICON), max_bytes)
        lexicon = _parse_lexicon(files.path(LEXICON), symbols)
        files.check(LEXICON)
    arrays = files.load_arrays(WEIGHTS, config, lexicon)
    vocab = None
    if config.softmax is not None and not files.has(SOFTMAX):
        config = replace(config, softmax=None)  # vectors do not need it
    if config.softmax is not None:
        softmax = files.load_arrays(SOFTMAX, config, lexicon)
        arrays.update({SOFTMAX_PREFIX + name: a for name, a in softmax.items()})
        files.check_exists(VOCAB)
        if files.has(VOCAB):
            max_words = MAX_BYTES + files.size(SOFTMAX)
            vocab = read_vocab(files.path(VOCAB), config.softmax.n_words, max_words)
            files.check(VOCAB)

    def where(name: str) -> Path:
        names = {"characters": LEXICON, "words": LEXICON, "vocab": VOCAB}
        default = SOFTMAX if name.startswith(SOFTMAX_PREFIX) else WEIGHTS
        return files.path(names.get(name, default))

    return build(config, arrays, where=where, lexicon=lexicon, vocab=vocab)


def save_native(data: BiLMData, folder: Path, dtype: str = STORED) -> None:
    """Write a native folder, with the weights in one of quantize.DTYPES. If there is a
    model in the folder, it can be loaded until the new one can be; files that are not
    those of a model are kept."""
    used = [LEXICON] if data.config.softmax is None else FILES.optional
    FILES.replace(folder, lambda part: _write(data, part, dtype), _optional_in, used)


def _optional_in(folder: Path) -> list[str]:
    """List the optional files of the model in a folder: those that its config has
    checksums of, or all if it has none, as in folders that older releases wrote."""
    try:
        known = read_json(folder / CONFIG)[CHECKSUMS]
        return [name for name in FILES.optional if name in known]
    except (SourceError, LookupError, TypeError):
        return [*FILES.optional]


def _write(data: BiLMData, folder: Path, dtype: str) -> None:
    """Write the files of a model to an empty folder."""
    weights = without_softmax(data.arrays)
    softmax = {k: a for k, a in data.arrays.items() if k not in weights}
    weights = quantize(weights, dtype, data.stored)
    # In the file of the softmax, the names have no prefix.
    softmax = {
        name.removeprefix(SOFTMAX_PREFIX): array
        for name, array in quantize(softmax, dtype, data.stored).items()
    }
    write_atomically(folder / WEIGHTS, lambda path: save_arrays(weights, path))
    if softmax:
        write_atomically(folder / SOFTMAX, lambda path: save_arrays(softmax, path))
        if data.vocab is not None:
            write_vocab(folder / VOCAB, data.vocab)
    if data.lexicon.characters or data.lexicon.words:
        write_json(folder / LEXICON, vars(data.lexicon))
    names = [name for name in (WEIGHTS, *FILES.optional) if (folder / name).exists()]
    config = _config_data(data.config)
    config[CHECKSUMS] = {name: checksum_file(folder / name) for name in names}
    config[CHECKSUMS][CONFIG] = _checksum_json(config)
    write_json(folder / CONFIG, config)


class _Files:
    """Finds the files of a native folder, and compares them with the checksums in the
    config, if it has any: folders that older releases have written do not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = read_json(self.path(CONFIG))
        self.checksums: Any = None
        if isinstance(self.config, dict):
            self.checksums = self.config.get(CHECKSUMS)

    def path(self, name: str) -> Path:
        """Return where a file is, or where it should be."""
        return FILES.path(self.folder, name)

    def has(self, name: str) -> bool:
        """Return whether the model has a file."""
        return self.path(name).exists()

    def check_config(self) -> None:
        """Raise SourceError if the config has changed since it was saved."""
        if CHECKSUMS not in self.config:
            return
        if not isinstance(self.checksums, dict):
            raise SourceError(
                f"{self.path(CONFIG)}: found '{CHECKSUMS}' that is not an object; "
                "expected an object with the checksum of each file"
            )
        self._compare(CONFIG, _checksum_json(self.config))

    def check_exists(self, name: str) -> None:
        """Raise SourceError if a file was saved but is not there."""
        if self.checksums and name in self.checksums and not self.path(name).exists():
            raise SourceError(
                f"{self.path(name)}: no such file; expected it, by its checksum in "
                f"{CONFIG}"
            )

    def size(self, name: str) -> int:
        """Return the number of bytes of a file of weights, or raise SourceError."""
        return check_file(self.path(name), "weights")

    def load_arrays(
        self, name: str, config: BiLMConfig, lexicon: Lexicon
    ) -> dict[str, np.ndarray]:
        """Load a file of weights, and raise SourceError if it has changed since it was
        saved, or has more than the model can need."""
        path = self.path(name)
        _check_size(path, self.size(name), config, lexicon)
        if self.checksums is None:
            return load_arrays(path)
        checksum = Checksum()
        # A second thread reads what is in memory while the rest is loaded, so that the
        # check of large weights hardly delays loading them.
        with ThreadPoolExecutor(1) as pool:
            arrays = load_arrays(path, lambda piece: pool.submit(checksum.add, piece))
        self._compare(name, checksum.result())
        return arrays

    def check(self, name: str) -> None:
        """Raise SourceError if a file has changed since it was saved."""
        if self.checksums is not None:
            self._compare(name, checksum_file(self.path(name)))

    def _compare(self, name: str, found: str) -> None:
        if found != self.checksums.get(name):
            raise SourceError(
                f"{self.path(name)}: found contents that do not match its "
                f"checksum in {CONFIG}; expected the file as it was written (after a "
                f"change by hand, remove '{CHECKSUMS}' from {CONFIG})"
            )


def _check_size(path: Path, size: int, config: BiLMConfig, lexicon: Lexicon) -> None:
    """Raise SourceError if a file is larger than all weights of a model in float32,
    before it is read."""
    needed = MAX_BYTES
    for _, shape in iterate_shapes(config, lexicon):
        if needed >= size:
            return
        needed += 4 * math.prod(shape)
    if needed < size:
        raise SourceError(
            f"{path}: found {size:,} bytes; expected at most {needed:,} for a biLM of "
            f"the sizes in {CONFIG}"
        )


def _checksum_json(config: dict[str, Any]) -> str:
    """Compute the checksum of a config without the entry for the config itself."""
    files = {k: v for k, v in config[CHECKSUMS].items() if k != CONFIG}
    text = json.dumps({**config, CHECKSUMS: files}, sort_keys=True)
    return checksum_bytes(text.encode())


def native_parts(data: BiLMData) -> dict[str, Any]:
    """Convert a model to data that msgpack can hold.

    RETURNS (dict[str, Any]): The contents of a native folder: "config", "lexicon" and
        "vocab" as JSON data, and "weights", with those of the softmax, as the bytes of
        a safetensors file. The weights have the types in which they were loaded.
    """
    parts = {
        "config": _config_data(data.config),
        "lexicon": vars(data.lexicon),
        "vocab": data.vocab,
        "weights": arrays_to_bytes(quantize(data.arrays, STORED, data.stored)),
    }
    # The checksum comes first: lost bytes of the weights cannot hide it.
    return {"checksum": _checksum_parts(parts), **parts}


def _checksum_parts(parts: dict[str, Any]) -> str:
    others = [parts[name] for name in ("config", "lexicon", "vocab")]
    return checksum_bytes(json.dumps(others).encode(), parts["weights"])


def load_native_parts(parts: Any, where: Path = Path("biLM")) -> BiLMData:
    """Make the data of a model from the result of native_parts.

    where (Path): The file to name in error messages.
    """
    types: dict[str, Any] = {
        "config": dict,
        "lexicon": dict,
        "weights": (bytes, memoryview),
    }
    known = {*types, "vocab", "checksum"}
    if (
        not isinstance(parts, dict)
        or not all(isinstance(parts.get(name), kind) for name, kind in types.items())
        or any(name not in known for name in parts)
    ):
        raise SourceError(
            f"{where}: found no config, lexicon and weights; expected those of a biLM"
        )
    vocab = parts.get("vocab")
    if not isinstance(vocab, (list, type(None))):
        raise SourceError(f"{where}: found no list of words; expected a vocabulary")
    config = _parse_config(where, parts["config"])
    lexicon = _parse_lexicon(where, parts["lexicon"])
    # Pipelines of older releases have no checksum.
    if "checksum" in parts and parts["checksum"] != _checksum_parts(
        {**parts, "vocab": vocab}
    ):
        raise SourceError(
            f"{where}: found contents that do not match their checksum; "
            "expected the biLM as it was written"
        )
    return build(
        config,
        arrays_from_bytes(parts["weights"], where),
        where=lambda name: where,
        lexicon=lexicon,
        vocab=vocab,
    )


def _config_data(config: BiLMConfig) -> dict[str, Any]:
    return {"format": FORMAT, "format_version": VERSION, **config.to_dict()}


def _parse_config(path: Path, data: Any) -> BiLMConfig:
    if not _is_config(data):
        raise SourceError(
            f'{path}: found no "format": "{FORMAT}"; expected the config of '
            "a native biLM folder"
        )
    if data.get("format_version") != VERSION or data["format_version"] is True:
        raise SourceError(
            f"{path}: found format version {data.get('format_version')!r}; "
            f"this release of spacy-elmo reads version {VERSION}"
        )
    try:
        others = ("format", "format_version", CHECKSUMS)
        sections = {k: v for k, v in data.items() if k not in others}
        return BiLMConfig.from_dict(sections)
    except ValueError as error:
        raise SourceError(f"{path}: {error}") from None


def _parse_lexicon(path: Path, data: Any) -> Lexicon:
    parts = ("characters", "words")
    if not isinstance(data, dict) or not all(
        isinstance(data.get(part), dict)
        and all(type(row) is int and row >= 0 for row in data[part].values())
        for part in parts
    ):
        raise SourceError(f"{path}: expected 'characters' and 'words' with their rows")
    return Lexicon(**{part: data[part] for part in parts})
