"""The variants that a comparison trains: ways to use ELMo, and spaCy without it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from thinc.api import Config

BASELINE, VECTORS, WHOLE = "baseline", "vectors", "whole"
# The settings of the section [elmo] that variants set.
SETTINGS = ("where", "l2", "fixed")
# The settings that determine the size of a CNN, for each of its parts.
CNN_SIZES = {"embed": ("attrs", "rows"), "encode": ("depth",)}


class Variant(NamedTuple):
    """One way to build the pipeline.

    name (str): The name on the command line and in files.
    label (str): The name in tables.
    where (str | None): Where ELMo is added to the CNN: at its "input", its "output" or
        "both"; None for spaCy's CNN alone.
    l2 (float): The paper's lambda: the strength of the L2 penalty on layer weights.
    fixed (Callable[[int], list[float]] | None): Returns the layer weights s_j for a
        number of layers, token vectors included; None to learn the weights.
    vectors (bool): Whether the CNN uses static word vectors.
    whole (bool): Whether the CNN has the same size as in the baseline, even if the
        config with ELMo has a smaller one.
    """

    name: str
    label: str
    where: str | None = None
    l2: float = 0.001
    fixed: Callable[[int], list[float]] | None = None
    vectors: bool = False
    whole: bool = False

    def apply(self, config: Config, n_layers: int, baseline: Config) -> None:
        """Change a config, with ELMo or without it, to the config of this variant.

        n_layers (int): The number of layers of the biLM, token vectors included.
        baseline (Config): The config without ELMo.
        """
        if not self.vectors and "vectors" in config.get("paths", {}):
            config["paths"]["vectors"] = None
        if self.vectors:
            _include_vectors(config["components"])
        if self.whole:
            copy_cnn_sizes(config, baseline)
        if self.where is not None:
            fixed = None if self.fixed is None else self.fixed(n_layers)
            config["elmo"].update(where=self.where, l2=self.l2, fixed=fixed)


def copy_cnn_sizes(config: Config, baseline: Config) -> None:
    """Give the CNN of each component the size of the same component's CNN in the
    baseline or, if it has none there, of the CNN that the baseline's components
    share."""
    shared = _find_cnn(baseline["components"])
    for name, section in config["components"].items():
        ours = _find_cnn(section)
        theirs = _find_cnn(baseline["components"].get(name, {})) or shared
        if ours is not None and theirs is not None:
            for part, keys in CNN_SIZES.items():
                ours[part].update({key: theirs[part][key] for key in keys})


def _find_cnn(section: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first section that describes a CNN: this one or one inside it."""
    layers = {key: value for key, value in section.items() if isinstance(value, dict)}
    if all(
        set(keys) <= layers.get(part, {}).keys() for part, keys in CNN_SIZES.items()
    ):
        return section
    inner = (_find_cnn(layer) for layer in layers.values())
    return next((found for found in inner if found is not None), None)


def _include_vectors(section: dict[str, Any]) -> None:
    for key, value in section.items():
        if key == "include_static_vectors":
            section[key] = True
        elif isinstance(value, dict):
            _include_vectors(value)


def _top_layer_only(n_layers: int) -> list[float]:
    return [0.0] * (n_layers - 1) + [1.0]


def _equal_weights(n_layers: int) -> list[float]:
    return [1 / n_layers] * n_layers


def _learned_mix(l2: float) -> Variant:
    return Variant(f"mix-{l2:g}", f"ELMo, learned mix, lambda {l2:g}", "input", l2)


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(BASELINE, "spaCy without ELMo"),
        Variant(VECTORS, "spaCy without ELMo, static vectors", vectors=True),
        Variant("last", "ELMo, top layer only", "input", fixed=_top_layer_only),
        Variant("mean", "ELMo, plain average", "input", fixed=_equal_weights),
        _learned_mix(1.0),
        _learned_mix(0.001),
        Variant("output", "ELMo at the output", "output", whole=True),
        Variant(WHOLE, "ELMo at input and output, whole CNN", "both", whole=True),
        Variant("both", "ELMo at input and output", "both"),
    )
}


def default_share_variants(names: list[str]) -> list[str]:
    """Choose the variants to train with less than all data, if the user has not chosen
    them: the baseline, and the mix with lambda 0.001. If that mix is not compared, the
    last variant with ELMo is chosen instead.

    names (list[str]): The variants that are compared.
    """
    elmo = [v.name for v in find_variants(names) if v.where is not None]
    usual = _learned_mix(0.001).name
    chosen = [BASELINE, usual if usual in elmo else elmo[-1] if elmo else ""]
    return [name for name in chosen if name in names]


def find_variants(names: list[str]) -> list[Variant]:
    """Look up variants, in the order of VARIANTS."""
    for name in names:
        if name not in VARIANTS:
            expected = ", ".join(VARIANTS)
            raise ValueError(f"found a variant {name!r}; expected some of {expected}")
    return [variant for variant in VARIANTS.values() if variant.name in names]
