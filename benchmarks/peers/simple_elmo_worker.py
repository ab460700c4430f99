"""Worker: simple_elmo on TensorFlow, run by the interpreter of an environment that has
it."""

import os
from typing import Any

import numpy as np
from protocol import Sentences, Vectors, embed_sorted, serve_system

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # the LSTM cells it needs are not in Keras 3


class SimpleElmo:
    """`ElmoModel.get_elmo_vectors(layers="all")` in one session that stays open.

    Left to itself it opens a session and sets all variables anew in every call; handing
    a session over, as its users do for speed, spares it that.
    """

    def __init__(self) -> None:
        import simple_elmo
        import tensorflow

        self.simple_elmo, self.tf = simple_elmo, tensorflow.compat.v1

    def load(self, folder: str, max_batch: int = 128, **_: Any) -> None:
        """
        max_batch (int): The largest batch that will be asked for. Smaller ones run in
            the same graph.
        """
        self.model = self.simple_elmo.ElmoModel()
        self.model.load(folder, max_batch_size=max_batch)
        self.model.elmo_sentence_input = self.simple_elmo.weight_layers(
            "input", self.model.sentence_embeddings_op, use_layers="all"
        )
        self.session = self.tf.Session()
        self.session.run(self.tf.global_variables_initializer())

    def prepare(self) -> None:
        """Nothing: there is no cache. The LSTMs' states run on, as they always do."""

    def embed(self, sentences: Sentences, batch: int) -> Vectors:
        """Batch by batch, so that no array for the whole text has to be filled."""
        with self.session.graph.as_default():
            return embed_sorted(sentences, batch, self.embed_batch)

    def embed_batch(self, sentences: Sentences) -> Vectors:
        """Compute the layers of one batch, without padding."""
        padded = self.model.get_elmo_vectors(
            sentences, warmup=False, layers="all", session=self.session
        )  # (batch, layers, longest, width) float64
        return [
            padded[row, :, : len(sentence)].astype(np.float32)
            for row, sentence in enumerate(sentences)
        ]


if __name__ == "__main__":
    serve_system(SimpleElmo())
