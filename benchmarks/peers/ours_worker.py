"""Worker: spacy_elmo itself, from the checkout that contains this file."""

import sys
from pathlib import Path
from typing import Any

from protocol import Sentences, Vectors, batches, serve_system

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


class Ours:
    """`load_bilm(...).embed(...)`, with a cold or a warm word cache."""

    def __init__(self) -> None:
        from spacy_elmo import load_bilm

        self.load_bilm = load_bilm

    def load(
        self,
        folder: str,
        engine: str = "torch",
        precision: str = "float32",
        warm: bool = False,
        **_: Any,
    ) -> None:
        """Load the biLM of a folder.

        engine (str): "torch" or "numpy".
        precision (str): "float32" or "int8".
        warm (bool): Keep the word cache from one timed call to the next.
        """
        self.bilm = self.load_bilm(folder, engine=engine, precision=precision)
        self.bilm.embed([["A", "sentence"]])  # the first call packs the weights
        self.warm = warm

    def prepare(self) -> None:
        """Clear the word cache, unless a warm cache is measured."""
        if not self.warm:
            self.bilm.clear_cache()

    def embed(self, sentences: Sentences, batch: int) -> Vectors:
        """Compute the vectors of batches in the order of the text: `BiLM.embed` sorts
        the sentences of a call by itself."""
        parts = batches(sentences, batch)
        return [array for part in parts for array in self.bilm.embed(part)]

    def embed_batch(self, sentences: Sentences) -> Vectors:
        """Continue from the LSTM states of the previous batch, as the peers do."""
        return self.bilm.embed(sentences, stateful=True)


if __name__ == "__main__":
    serve_system(Ours())
