"""The trainings that a comparison consists of.

The result of a training is kept, and used again as long as its fingerprint stays the
same. The fingerprint covers everything that affects the scores:

- the config, with the variant and the seed applied;
- the contents of the data, the biLM and other files that the config names, but not
  their paths;
- the version and contents of installed packages that the config names, such as
  pipelines with word vectors;
- the versions of spaCy and Thinc and, if ELMo is used, of spacy-elmo and torch. Rows
  from different versions would not be a fair comparison, so after an upgrade the
  trainings are repeated. After an upgrade of spacy-elmo or torch, only the trainings
  with ELMo are repeated.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thinc.api import Config

from ..about import __version__
from ..fingerprints import fingerprint_data
from .config_pair import IRRELEVANT, ConfigPair
from .source_fingerprints import get_versions
from .variants import VECTORS, Variant

CACHE = ("cache_layers", "cache_memory_mb", "cache_folder")


@dataclass
class TrainingRun:
    """One training: a variant with a share of the data and a seed.

    config (Config): The config, with the variant and the seed applied.
    fingerprint (str): A fingerprint of everything that affects the scores.
    versions (dict[str, str]): The versions of the packages that affect the scores.
    """

    variant: Variant
    share: float
    seed: int
    config: Config
    fingerprint: str
    versions: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.variant.name}-{name_share(self.share)}-{self.seed}"

    def __str__(self) -> str:
        share = f"{100 * self.share:g} % of the data"
        return f"{self.variant.name}, {share}, seed {self.seed}"


def name_share(share: float) -> str:
    """Return all digits of a share, such as 1 or 0.1, for the names of files."""
    return repr(share).removesuffix(".0")


def plan_runs(
    pair: ConfigPair,
    variants: Sequence[Variant],
    seeds: Sequence[int],
    shares: Sequence[float],
    share_variants: Sequence[str],
) -> list[TrainingRun]:
    """Plan all trainings. All variants with the first seed come first, so that each
    variant has a score early.

    share_variants (Sequence[str]): The variants that are also trained with less than
        all data.
    """
    return [
        make_run(pair, variant, share, seed)
        for seed in seeds
        for share in shares
        for variant in variants
        if share == 1 or variant.name in share_variants
    ]


def make_run(
    pair: ConfigPair, variant: Variant, share: float, seed: int
) -> TrainingRun:
    """Make the run of a variant: apply the variant and the seed to a config, and
    compute the fingerprint."""
    if variant.name == VECTORS and not pair.has_vectors:
        raise ValueError(
            f"the variant {VECTORS!r} needs word vectors; expected --paths.vectors"
        )
    config = copy.deepcopy(pair.baseline if variant.where is None else pair.elmo)
    variant.apply(config, pair.elmo_info.n_layers, pair.baseline)
    config["training"]["seed"] = seed
    versions = get_versions("spacy", "thinc")
    if variant.where is not None:
        versions |= {**get_versions("torch"), "spacy-elmo": __version__}
    fingerprint = fingerprint_data(
        [_relevant_settings(pair, config, variant), share, versions]
    )
    return TrainingRun(variant, share, seed, config, fingerprint, versions)


def _relevant_settings(pair: ConfigPair, config: Config, variant: Variant) -> Any:
    """Return the settings that affect the scores, with fingerprints in place of paths
    and packages."""
    settings = _replace(config.interpolate(), pair.fingerprints)
    for name in IRRELEVANT:
        settings["training"].pop(name, None)
    if variant.where is not None:
        elmo = settings["components"][pair.elmo_info.name]
        for name in CACHE:
            elmo.pop(name, None)
        # The weights of the biLM affect the scores, its path does not.
        elmo["bilm"] = settings["elmo"]["bilm"] = pair.elmo_info.fingerprint
    return settings


def _replace(value: Any, replacements: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _replace(inner, replacements) for key, inner in value.items()}
    if isinstance(value, str):
        return replacements.get(value, value)
    return value
