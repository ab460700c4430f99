"""Worker: AllenNLP's ELMo, run by the interpreter of an environment that has it.

AllenNLP imports much that its ELMo never calls (transformers, fairscale, spaCy, ...),
in versions that do not go with a current torch. What is not installed is replaced
while AllenNLP is imported by empty modules: the computation is AllenNLP's own code.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

import h5py  # noqa: F401  (before the stand-ins, lest it meets one of them)
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
    """An empty module: any name asked of it is an empty class."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        empty = type(name, (), {})
        setattr(self, name, empty)
        return empty


class _StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for each unused package that is not installed."""

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
    """Import AllenNLP's module of ELMo; the paths it opens are local ones."""
    stand_ins = _StandIns()
    sys.meta_path.append(stand_ins)  # last: an installed package goes first
    try:
        from allennlp.modules import elmo, elmo_lstm
    finally:
        sys.meta_path.remove(stand_ins)
    for module in (elmo, elmo_lstm):
        module.cached_path = str
    return elmo


class AllenNLP:
    """The biLM inside AllenNLP's `Elmo`, which hands out all layers.

    Taking the layers from it directly spares AllenNLP the mixing of layers and the row
    by row removal of the boundary words that `Elmo` adds.
    """

    def __init__(self) -> None:
        self.elmo = import_allennlp()

    def load(self, folder: str, **_: Any) -> None:
        """Build `Elmo` on a folder's files, for inference."""
        model = self.elmo.Elmo(
            f"{folder}/options.json",
            f"{folder}/weights.hdf5",
            num_output_representations=1,
            dropout=0.0,
        )
        self.bilm = model.eval()._elmo_lstm

    def prepare(self) -> None:
        """Nothing: there is no cache. The LSTMs' states run on, as they always do."""

    def embed(self, sentences: Sentences, batch: int) -> Vectors:
        """Character ids, biLM and the copy to numpy: words in, arrays out."""
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
