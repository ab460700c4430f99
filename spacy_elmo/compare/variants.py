"""What is compared: ways to use ELMo, and spaCy without it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from thinc.api import Config

BASELINE, VECTORS, WHOLE = "baseline", "vectors", "whole"
# What variants set in the section [elmo].
SETTINGS = ("where", "l2", "fixed")
# What makes a CNN larger or smaller.
CNN = {"embed": ("attrs", "rows"), "encode": ("depth",)}


class Variant(NamedTuple):
    """One row of the comparison.

    name, label (str): For commands, and for people.
    where (str | None): Where ELMo goes; None for spaCy's own CNN.
    l2 (float): The paper's lambda.
    fixed (Callable[[int], list[float]] | None): The s_j for a number of layers, if
        they are not to be learned.
    vectors (bool): Whether the CNN reads static vectors.
    whole (bool): Whether the CNN beside ELMo is that of the baseline, if the config has
        less of it.
    """

    name: str
    label: str
    where: str | None = None
    l2: float = 0.001
    fixed: Callable[[int], list[float]] | None = None
    vectors: bool = False
    whole: bool = False

    def apply(self, config: Config, n_layers: int, baseline: Config) -> None:
        """Change a config, the baseline's or ELMo's, to that of this variant."""
        if not self.vectors and "vectors" in config.get("paths", {}):
            config["paths"]["vectors"] = None
        if self.vectors:
            _include_vectors(config["components"])
        if self.whole:
            make_whole(config, baseline)
        if self.where is not None:
            fixed = None if self.fixed is None else self.fixed(n_layers)
            config["elmo"].update(where=self.where, l2=self.l2, fixed=fixed)


def make_whole(config: Config, baseline: Config) -> None:
    """Let the CNN of each component of config embed what its CNN in baseline does, or
    the one that all share there, and have as many layers."""
    shared = _find_cnn(baseline["components"])
    for name, section in config["components"].items():
        ours = _find_cnn(section)
        theirs = _find_cnn(baseline["components"].get(name, {})) or shared
        if ours is not None and theirs is not None:
            for part, keys in CNN.items():
                ours[part].update({key: theirs[part][key] for key in keys})


def _find_cnn(section: dict[str, Any]) -> dict[str, Any] | None:
    """RETURNS (dict[str, Any] | None): The first one in a section."""
    layers = {key: value for key, value in section.items() if isinstance(value, dict)}
    if all(set(keys) <= layers.get(part, {}).keys() for part, keys in CNN.items()):
        return section
    inner = (_find_cnn(layer) for layer in layers.values())
    return next((found for found in inner if found is not None), None)


def _include_vectors(section: dict[str, Any]) -> None:
    for key, value in section.items():
        if key == "include_static_vectors":
            section[key] = True
        elif isinstance(value, dict):
            _include_vectors(value)


def _top(n_layers: int) -> list[float]:
    return [0.0] * (n_layers - 1) + [1.0]


def _mean(n_layers: int) -> list[float]:
    return [1 / n_layers] * n_layers


def _learned(l2: float) -> Variant:
    return Variant(f"mix-{l2:g}", f"ELMo, learned mix, lambda {l2:g}", "input", l2)


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(BASELINE, "spaCy CNN"),
        Variant(VECTORS, "spaCy CNN, static vectors", vectors=True),
        Variant("last", "ELMo, top layer only", "input", fixed=_top),
        Variant("mean", "ELMo, plain average", "input", fixed=_mean),
        _learned(1.0),
        _learned(0.001),
        Variant("output", "ELMo at the output", "output", whole=True),
        Variant(WHOLE, "ELMo at both, whole CNN", "both", whole=True),
        Variant("both", "ELMo at input and output", "both"),
    )
}


def share_variants(names: list[str]) -> list[str]:
    """RETURNS (list[str]): Those that run with less than all data if nothing is said of
    it: the baseline, and ELMo's usual mix or, without it, the last way to use ELMo."""
    elmo = [v.name for v in find_variants(names) if v.where is not None]
    usual = _learned(0.001).name
    chosen = [BASELINE, usual if usual in elmo else elmo[-1] if elmo else ""]
    return [name for name in chosen if name in names]


def find_variants(names: list[str]) -> list[Variant]:
    """RETURNS (list[Variant]): In the order of VARIANTS, whatever the names' is."""
    for name in names:
        if name not in VARIANTS:
            expected = ", ".join(VARIANTS)
            raise ValueError(f"found a variant {name!r}; expected some of {expected}")
    return [variant for variant in VARIANTS.values() if variant.name in names]
