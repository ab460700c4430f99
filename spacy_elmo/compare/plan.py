"""Which runs a comparison consists of, and what each depends on."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spacy.util import load_model_from_config
from thinc.api import Config, ConfigValidationError

from ..fingerprints import fingerprint_data, fingerprint_path
from ..layers.elmo_model import get_shim
from ..pipeline.component import Elmo
from .variants import SETTINGS, VECTORS, Variant, make_whole

# What changes no score.
IRRELEVANT = ("gpu_allocator", "logger")
CACHE = ("cache_layers", "cache_memory_mb", "cache_folder")
# What may differ between the [training] of the two configs.
FREE = ("annotating_components", "frozen_components", *IRRELEVANT)
SEEDS = ("training.seed", "system.seed")


class ElmoFacts(NamedTuple):
    """name (str): Of the component. fingerprint (str): Of its biLM."""

    name: str
    n_layers: int
    fingerprint: str
    frozen: bool


@dataclass
class Run:
    """One training.

    key (str): Differs if the config or the data do.
    """

    variant: Variant
    share: float
    seed: int
    config: Config
    key: str

    @property
    def name(self) -> str:
        return f"{self.variant.name}-{self.share:g}-{self.seed}"

    def __str__(self) -> str:
        share = f"{100 * self.share:g} % of the data"
        return f"{self.variant.name}, {share}, seed {self.seed}"


class Pair:
    """The two configs, checked.

    baseline, elmo (Path): The configs.
    overrides (dict[str, Any]): For both, by "section.key", where they have it.

    gives_vectors (bool): Whether word vectors are among the overrides.
    """

    def __init__(self, baseline: Path, elmo: Path, overrides: dict[str, Any]) -> None:
        for key in overrides:
            if key in SEEDS:
                raise ValueError(f"{key} is what --seeds sets; leave it out")
            if key in [f"elmo.{name}" for name in SETTINGS]:
                raise ValueError(f"{key} is what the variants set; leave it out")
        self.gives_vectors = overrides.get("paths.vectors") is not None
        self.paths = (baseline, elmo)
        self.baseline, self.elmo = (read_config(path) for path in self.paths)
        for key, value in overrides.items():
            changed = [_override(c, key, value) for c in (self.baseline, self.elmo)]
            if not any(changed):
                raise ValueError(f"--{key}: found no such setting in {elmo}")
        section = self.elmo.get("elmo", {})
        for name in SETTINGS:
            if name not in section:
                raise ValueError(
                    f"{elmo}: found no {name} in a section [elmo]; expected a config "
                    "like configs/parsing_elmo.cfg"
                )
        plain = [_plain(config, path) for config, path in zip(self, self.paths)]
        _check_same(plain, self.paths)
        self.train, self.dev = (
            _data_path(plain[0], corpus) for corpus in ("train_corpus", "dev_corpus")
        )
        self.digests = _digests(plain, [str(self.train), str(self.dev)])
        self.facts = _find_elmo(self.elmo, elmo)
        _build(self.baseline, baseline)

    def __iter__(self) -> Any:
        return iter((self.baseline, self.elmo))

    @property
    def has_vectors(self) -> bool:
        return self.baseline.get("paths", {}).get("vectors") is not None

    @property
    def leaves_out(self) -> bool:
        """RETURNS (bool): Whether the CNN beside ELMo has less than the baseline's."""
        config = copy.deepcopy(self.elmo)
        make_whole(config, self.baseline)
        return config != self.elmo

    @property
    def task(self) -> str:
        """RETURNS (str): The components that both pipelines have."""
        theirs = self.elmo["nlp"]["pipeline"]
        return ", ".join(n for n in self.baseline["nlp"]["pipeline"] if n in theirs)

    def run(self, variant: Variant, share: float, seed: int) -> Run:
        if variant.name == VECTORS and not self.has_vectors:
            raise ValueError(
                f"the variant {VECTORS!r} needs word vectors; expected --paths.vectors"
            )
        config = copy.deepcopy(self.baseline if variant.where is None else self.elmo)
        variant.apply(config, self.facts.n_layers, self.baseline)
        config["training"]["seed"] = seed
        return Run(variant, share, seed, config, self._key(config, variant, share))

    def _key(self, config: Config, variant: Variant, share: float) -> str:
        facts = _replace(config.interpolate(), self.digests)
        for name in IRRELEVANT:
            facts["training"].pop(name, None)
        if variant.where is not None:
            elmo = facts["components"][self.facts.name]
            for name in CACHE:
                elmo.pop(name, None)
            # The weights count, not where they are.
            elmo["bilm"] = facts["elmo"]["bilm"] = self.facts.fingerprint
        return fingerprint_data([facts, share])


def make_runs(
    pair: Pair,
    variants: Sequence[Variant],
    seeds: Sequence[int],
    shares: Sequence[float],
    share_variants: Sequence[str],
) -> list[Run]:
    """share_variants (Sequence[str]): Which variants run with less than all data.
    RETURNS (list[Run]): One seed after the other, so that each variant has a score
        early."""
    return [
        pair.run(variant, share, seed)
        for seed in seeds
        for share in shares
        for variant in variants
        if share == 1 or variant.name in share_variants
    ]


def read_config(path: Path) -> Config:
    try:
        config = Config().from_disk(path, interpolate=False)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path}: cannot be read as a config: {one_line(error)}"
        ) from None
    for section in ("nlp", "components", "corpora", "training"):
        if section not in config:
            raise ValueError(f"{path}: found no section [{section}]")
    return config


def one_line(error: BaseException) -> str:
    """RETURNS (str): What is wrong, without the tables that spaCy makes of it."""
    if isinstance(error, ConfigValidationError) and error.errors:
        return "; ".join(
            f"{'.'.join(map(str, found.get('loc', [])))}: {found.get('msg', '')}"
            for found in error.errors
        )
    return " ".join(str(error).split())


def _override(config: Config, key: str, value: Any) -> bool:
    """RETURNS (bool): Whether the config has such a setting."""
    *sections, name = key.split(".")
    section: Any = config
    for part in sections:
        section = section.get(part) if isinstance(section, dict) else None
    if not isinstance(section, dict) or name not in section:
        return False
    section[name] = value
    return True


def _plain(config: Config, path: Path) -> Config:
    try:
        return config.interpolate()
    except Exception as error:  # configparser's and confection's have no common base
        raise ValueError(f"{path}: {one_line(error)}") from None


def _check_same(configs: Sequence[Config], paths: Sequence[Path]) -> None:
    """Same data, same budget."""
    ours, theirs = (
        {
            "corpora": config["corpora"],
            "training": {k: v for k, v in config["training"].items() if k not in FREE},
        }
        for config in configs
    )
    for section in ours:
        for key in sorted({**ours[section], **theirs[section]}):
            values = [part[section].get(key) for part in (ours, theirs)]
            if values[0] != values[1]:
                raise ValueError(
                    f"{section}.{key} differs between {paths[0]} and {paths[1]}; a "
                    "comparison needs the same"
                )


def _data_path(config: Config, corpus: str) -> Path:
    dotted = config["training"][corpus]
    section: Any = config
    for part in dotted.split("."):
        section = section.get(part, {})
    path = section.get("path")
    if path is None:
        short = dotted.split(".")[-1]
        raise ValueError(f"{dotted} has no path; expected --paths.{short} FILE")
    if not Path(path).exists():
        raise ValueError(f"{path}: no such file; expected it for {dotted}")
    return Path(path)


def _digests(configs: Sequence[Config], paths: list[str]) -> dict[str, str]:
    """RETURNS (dict[str, str]): Of paths and whatever else [paths] names, by path."""
    named = set(paths)
    for config in configs:
        values = config.get("paths", {}).values()
        named.update(value for value in values if isinstance(value, str))
    return {path: fingerprint_path(Path(path)) for path in named if Path(path).exists()}


def _replace(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replace(inner, names) for key, inner in value.items()}
    if isinstance(value, str):
        return names.get(value, value)
    return value


def _build(config: Config, path: Path) -> Any:
    try:
        return load_model_from_config(config.interpolate(), auto_fill=True)
    except ValueError as error:
        raise ValueError(f"{path}: {one_line(error)}") from None


def _find_elmo(config: Config, path: Path) -> ElmoFacts:
    for name, pipe in _build(config, path).components:
        if isinstance(pipe, Elmo):
            n_layers, _ = pipe.sizes()
            shim = get_shim(pipe.model)
            return ElmoFacts(name, n_layers, shim.fingerprint, shim.frozen)
    raise ValueError(f"{path}: found no 'elmo' in the pipeline")
