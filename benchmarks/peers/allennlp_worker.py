"""Worker: AllenNLP's ELMo, run by the interpreter of an environment that has it.

AllenNLP imports many packages that its ELMo never calls (transformers, fairscale, spaCy
and more), in versions that do not work with a current torch. During that import, empty
modules replace those that are not installed. All computation is AllenNLP's own code.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

import h5py  # noqa: F401  (before the stand-ins, so that it gets none of them)
import numpy as np
import torch
from protocol import Sentences, Vectors, embed_sorted, serve_system

# Packages that AllenNLP imports and that its ELMo does not need.
UNUSED = (
    *("_jsonnet", "base58", "cached_path", "dill", "fairscale", "huggingface_hub"),
    *("lmdb", "more_itertools", "nltk", "requests", "scipy", "sklearn", "spacy"),
    *("tensorboardX", "termcolor", "torchvision", "tqdm", "transformers", "wandb"),
)


class _StandIn(types.ModuleType):
    """An empty module, each attribute of which is an empty class."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        empty = type(name, (), {})
        setattr(self, name, empty)
        return empty


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """An import hook that creates a stand-in for each package in UNUSED that is not
    installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in UNUSED:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def import_allennlp() -> Any:
    """Import AllenNLP's ELMo module and let it open local paths without its cache."""
    stand_ins = _StandIns()
    sys.meta_path.append(stand_ins)  # last, so that installed packages are preferred
    try:
        from allennlp.modules import elmo, elmo_lstm
    finally:
        sys.meta_path.remove(stand_ins)
    for module in (elmo, elmo_lstm):
        module.cached_path = str
    return elmo


class AllenNLP:
    """The biLM inside AllenNLP's `Elmo`, which returns all layers.

    `Elmo` itself would also mix the layers and remove the boundary words row by row. We
    use the biLM directly, so that AllenNLP need not spend time on that.
    """

    def __init__(self) -> None:
        self.elmo = import_allennlp()

    def load(self, folder: str, **_: Any) -> None:
        """Build `Elmo` from the files of a folder, for inference."""
        model = self.elmo.Elmo(
            f"{folder}/options.json",
            f"{folder}/weights.hdf5",
            num_output_representations=1,
            dropout=0.0,
        )
        self.bilm = model.eval()._elmo_lstm

    def prepare(self) -> None:
        """Do nothing: there is no cache to clear, and AllenNLP always carries the LSTM
        states from one call to the next."""

    def embed(self, sentences: Sentences, batch: int) -> Vectors:
        """Compute the character ids, run the biLM and copy the vectors to numpy."""
        with torch.inference_mode():
            return embed_sorted(sentences, batch, self.embed_batch)

    def embed_batch(self, sentences: Sentences) -> Vectors:
        """Compute the layers of one batch, without the boundary words."""
        ids = self.elmo.batch_to_ids(sentences)  # (batch, longest, 50)
        activations = self.bilm(ids)["activations"]
        layers = [layer.numpy() for layer in activations]  # (batch, longest + 2, width)
        return [
            np.stack([layer[row, 1 : len(sentence) + 1] for layer in layers])
            for row, sentence in enumerate(sentences)
        ]


if __name__ == "__main__":
    serve_system(AllenNLP())
