"""What is compared: ways to use ELMo, and spaCy without it."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional

from thinc.api import Config

BASELINE, VECTORS = "baseline", "vectors"
# What variants set in the section [elmo].
SETTINGS = ("where", "l2", "fixed")


class Variant(NamedTuple):
    """One row of the comparison.

    name, label (str): For commands, and for people.
    where (Optional[str]): Where ELMo goes; None for spaCy's own CNN.
    l2 (float): The paper's lambda.
    fixed (Optional[Callable[[int], List[float]]]): The s_j for a number of layers, if
        they are not to be learned.
    vectors (bool): Whether the CNN reads static vectors.
    """

    name: str
    label: str
    where: Optional[str] = None
    l2: float = 0.001
    fixed: Optional[Callable[[int], List[float]]] = None
    vectors: bool = False

    def apply(self, config: Config, n_layers: int) -> None:
        """Change a config, the baseline's or ELMo's, to that of this variant."""
        if not self.vectors and "vectors" in config.get("paths", {}):
            config["paths"]["vectors"] = None
        if self.vectors:
            _include_vectors(config["components"])
        if self.where is not None:
            fixed = None if self.fixed is None else self.fixed(n_layers)
            config["elmo"].update(where=self.where, l2=self.l2, fixed=fixed)


def _include_vectors(section: Dict[str, Any]) -> None:
    for key, value in section.items():
        if key == "include_static_vectors":
            section[key] = True
        elif isinstance(value, dict):
            _include_vectors(value)


def _top(n_layers: int) -> List[float]:
    return [0.0] * (n_layers - 1) + [1.0]


def _mean(n_layers: int) -> List[float]:
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
        Variant("output", "ELMo at the output", "output"),
        Variant("both", "ELMo at input and output", "both"),
    )
}


def share_variants(names: List[str]) -> List[str]:
    """RETURNS (List[str]): Those that run with less than all data if nothing is said of
    it: the baseline, and ELMo's usual mix or, without it, the last way to use ELMo."""
    elmo = [v.name for v in find_variants(names) if v.where is not None]
    usual = _learned(0.001).name
    chosen = [BASELINE, usual if usual in elmo else elmo[-1] if elmo else ""]
    return [name for name in chosen if name in names]


def find_variants(names: List[str]) -> List[Variant]:
    """RETURNS (List[Variant]): In the order of VARIANTS, whatever the names' is."""
    for name in names:
        if name not in VARIANTS:
            expected = ", ".join(VARIANTS)
            raise ValueError(f"found a variant {name!r}; expected some of {expected}")
    return [variant for variant in VARIANTS.values() if variant.name in names]
