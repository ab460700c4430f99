"""The two configs of a comparison: a pipeline without ELMo and the same with ELMo."""

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.util import load_model_from_config
from thinc.api import Config, ConfigValidationError

from ..bilm.config import shorten
from ..fingerprints import fingerprint_path
from ..layers.elmo_model import get_shim
from ..pipeline.component import Elmo
from ..regular_files import read_text
from .source_fingerprints import fingerprint_sources
from .variants import SETTINGS, copy_cnn_sizes

# Settings of [training] that do not affect the scores.
IRRELEVANT = ("gpu_allocator", "logger")
# Settings of [training] in which the two configs may differ.
MAY_DIFFER = ("annotating_components", "frozen_components", *IRRELEVANT)
SEEDS = ("training.seed", "system.seed")


class ElmoInfo(NamedTuple):
    """Properties of the `elmo` component that a comparison needs.

    name (str): The name of the component in the pipeline.
    n_layers (int): The number of layers, token vectors included.
    fingerprint (str): The fingerprint of the biLM.
    frozen (bool): Whether the biLM is frozen.
    """

    name: str
    n_layers: int
    fingerprint: str
    frozen: bool


class ConfigPair:
    """Loads and checks the two configs.

    baseline, elmo (Path): The files of the two configs.
    overrides (dict[str, Any]): New values of settings, by "section.key". Each is set in
        every config that has this setting.

    gives_vectors (bool): Whether word vectors are among the overrides.
    train, dev (Path): The training data and the development data.
    train_fingerprint (str): The fingerprint of the training data.
    fingerprints (dict[str, str]): Fingerprints of the files and packages that the
        configs name, by the path or name in the config.
    """

    def __init__(self, baseline: Path, elmo: Path, overrides: dict[str, Any]) -> None:
        for key in overrides:
            if key in SEEDS:
                raise ValueError(f"{key} is what --seeds sets; leave it out")
            if key in [f"elmo.{name}" for name in SETTINGS]:
                raise ValueError(f"{key} is what the variants set; leave it out")
        self.gives_vectors = overrides.get("paths.vectors") is not None
        self.paths = (baseline, elmo)
        self.baseline, self.elmo = (load_config(path) for path in self.paths)
        for key, value in overrides.items():
            changed = [_override(config, key, value) for config in self]
            if not any(changed):
                raise ValueError(f"--{key}: found no such setting in {elmo}")
        section = self.elmo.get("elmo", {})
        for name in SETTINGS:
            if name not in section:
                raise ValueError(
                    f"{elmo}: found no {name} in a section [elmo]; expected a config "
                    "like configs/parsing_elmo.cfg"
                )
        plain = [_interpolate(config, path) for config, path in zip(self, self.paths)]
        _check_same(plain, self.paths)
        self.train, self.dev = (
            _find_data(plain[0], corpus, baseline)
            for corpus in ("train_corpus", "dev_corpus")
        )
        self.train_fingerprint = fingerprint_path(self.train)
        self.fingerprints = {
            name: fingerprint
            for config in plain
            for name, fingerprint in fingerprint_sources(config).items()
        }
        self.elmo_info = _find_elmo(self.elmo, elmo)
        _build_pipeline(self.baseline, baseline)

    def __iter__(self) -> Iterator[Config]:
        return iter((self.baseline, self.elmo))

    @property
    def has_vectors(self) -> bool:
        return self.baseline.get("paths", {}).get("vectors") is not None

    @property
    def has_smaller_cnn(self) -> bool:
        """Return whether the CNN of the config with ELMo is smaller than the CNN of the
        baseline."""
        config = copy.deepcopy(self.elmo)
        copy_cnn_sizes(config, self.baseline)
        return config != self.elmo

    @property
    def task(self) -> str:
        """Return the names of the components that are in both pipelines."""
        theirs = self.elmo["nlp"]["pipeline"]
        return ", ".join(n for n in self.baseline["nlp"]["pipeline"] if n in theirs)


def load_config(path: Path) -> Config:
    """Load a spaCy config without resolving its variables."""
    try:
        config = Config().from_str(read_text(path), interpolate=False)
    except Exception as error:  # the parsers' errors have no common base class
        raise ValueError(
            f"{path}: cannot be read as a config: {one_line(error)}"
        ) from None
    for section in ("nlp", "components", "corpora", "training"):
        if not isinstance(config.get(section), dict):
            raise ValueError(
                f"{path}: found no section [{section}]; expected a training config of "
                "spaCy"
            )
    return config


def one_line(error: BaseException) -> str:
    """Return the message of an error on one line, without the tables that spaCy prints
    for errors in configs."""
    if isinstance(error, ConfigValidationError) and error.errors:
        return "; ".join(
            f"{'.'.join(map(str, found.get('loc', [])))}: {found.get('msg', '')}"
            for found in error.errors
        )
    return " ".join(str(error).split())


def _override(config: Config, key: str, value: Any) -> bool:
    """Set a value if the config has this setting, and return whether it has."""
    *sections, name = key.split(".")
    section: Any = config
    for part in sections:
        section = section.get(part) if isinstance(section, dict) else None
    if not isinstance(section, dict) or name not in section:
        return False
    section[name] = value
    return True


def _interpolate(config: Config, path: Path) -> Config:
    try:
        return config.interpolate()
    except Exception as error:  # these errors have no common base class
        raise ValueError(f"{path}: {one_line(error)}") from None


def _check_same(configs: Sequence[Config], paths: Sequence[Path]) -> None:
    """Raise an error if the data, the tokens or the training settings of the configs
    differ."""
    ours, theirs = (
        {
            # Other tokens are other tasks.
            "nlp": {key: config["nlp"].get(key) for key in ("lang", "tokenizer")},
            "corpora": config["corpora"],
            "training": {
                key: value
                for key, value in config["training"].items()
                if key not in MAY_DIFFER
            },
        }
        for config in configs
    )
    for section in ours:
        for key in sorted({**ours[section], **theirs[section]}):
            values = [part[section].get(key) for part in (ours, theirs)]
            if values[0] != values[1]:
                raise ValueError(
                    f"{section}.{key} differs between {paths[0]} and {paths[1]}; "
                    "expected the same value in both"
                )


def _find_data(config: Config, corpus: str, file: Path) -> Path:
    """Return the path of a corpus.

    corpus (str): A setting of [training], such as "train_corpus".
    file (Path): The file of the config, to name it in errors.
    """
    dotted = config["training"].get(corpus)
    if not isinstance(dotted, str):
        raise ValueError(
            f"{file}: found training.{corpus} = {shorten(dotted)}; expected the name "
            "of a section, such as 'corpora.train'"
        )
    section: Any = config
    for part in dotted.split("."):
        section = section.get(part, {})
        if not isinstance(section, dict):
            raise ValueError(
                f"{file}: found {dotted} = {shorten(section)}; expected a section with "
                "a path"
            )
    path = section.get("path")
    if path is None:
        short = dotted.split(".")[-1]
        raise ValueError(f"{dotted} has no path; expected --paths.{short} FILE")
    if not isinstance(path, str):
        raise ValueError(
            f"{file}: found {dotted}.path = {shorten(path)}; expected the name of a "
            "file"
        )
    if not Path(path).exists():
        raise ValueError(f"{path}: no such file; expected it for {dotted}")
    return Path(path)


def _build_pipeline(config: Config, path: Path) -> Language:
    try:
        return load_model_from_config(config.interpolate(), auto_fill=True)
    except Exception as error:  # wrong types raise errors of any kind
        reason = one_line(error) or type(error).__name__
        raise ValueError(f"{path}: {reason}") from None


def _find_elmo(config: Config, path: Path) -> ElmoInfo:
    for name, pipe in _build_pipeline(config, path).components:
        if isinstance(pipe, Elmo):
            n_layers, _ = pipe.sizes()
            shim = get_shim(pipe.model)
            return ElmoInfo(name, n_layers, shim.fingerprint, shim.frozen)
    raise ValueError(f"{path}: found no 'elmo' in the pipeline")
