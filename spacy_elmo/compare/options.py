"""The options of the `compare` command, and checks of their values."""

from collections.abc import Sequence
from dataclasses import dataclass

KEEP = ("all", "first", "none")


@dataclass
class Options:
    """The options of a comparison.

    title (str): The title of the table; by default, the name of the output folder.
    variants (list[str] | None): Names of variants; by default, all variants that are
        possible with the configs. If the user gives word vectors, the variant "vectors"
        is added, because no other variant uses them.
    seeds (Sequence[int]): Each variant is trained once with each seed.
    shares (Sequence[float]): Shares of the training data, such as 1 and 0.1.
    share_variants (list[str] | None): The variants that are also trained with less
        than all data; see `variants.default_share_variants` for the default.
    n_process (int): How many trainings run at the same time.
    keep (str): Which trained pipelines are kept: "all", those of the "first" seed, or
        "none".
    gpu_id (int): The GPU to train on, or -1 for the CPU.
    """

    title: str = ""
    variants: list[str] | None = None
    seeds: Sequence[int] = (0, 1, 2)
    shares: Sequence[float] = (1.0,)
    share_variants: list[str] | None = None
    n_process: int = 1
    keep: str = "first"
    gpu_id: int = -1

    def __post_init__(self) -> None:
        self.shares = [float(share) for share in self.shares]
        for name in ("seeds", "shares"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} are {values}; expected different numbers")
        for share in self.shares:
            if not 0 < share <= 1:
                raise ValueError(f"a share is {share:g}; expected more than 0, up to 1")
        if self.n_process < 1:
            raise ValueError(f"n_process is {self.n_process}; expected 1 or more")
        if self.keep not in KEEP:
            raise ValueError(f"keep is {self.keep!r}; expected one of {KEEP}")
