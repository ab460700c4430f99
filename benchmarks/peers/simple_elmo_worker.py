"""Worker: simple_elmo on TensorFlow, run by the interpreter of an environment that has
it."""

import os
from typing import Any

import numpy as np
from protocol import Sentences, Vectors, embed_sorted, serve_system

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 3 lacks the LSTM cells


class SimpleElmo:
    """`ElmoModel.get_elmo_vectors(layers="all")` in one session that stays open.

    Without a session, every call would open one and set all variables again. So we pass
    a session, as users of simple_elmo do for speed.
    """

    def __init__(self) -> None:
        import simple_elmo
        import tensorflow

        self.simple_elmo, self.tf = simple_elmo, tensorflow.compat.v1

    def load(self, folder: str, max_batch: int = 128, **_: Any) -> None:
        """Load the model of a folder and open a session.

        max_batch (int): The size of the largest batch. Smaller ones use the same graph.
        """
        self.model = self.simple_elmo.ElmoModel()
        self.model.load(folder, max_batch_size=max_batch)
        self.model.elmo_sentence_input = self.simple_elmo.weight_layers(
            "input", self.model.sentence_embeddings_op, use_layers="all"
        )
        self.session = self.tf.Session()
        self.session.run(self.tf.global_variables_initializer())

    def prepare(self) -> None:
        """Do nothing: there is no cache to clear, and simple_elmo always carries the
        LSTM states from one call to the next."""

    def embed(self, sentences: Sentences, batch: int) -> Vectors:
        """Compute the vectors batch by batch, so that simple_elmo never has to fill an
        array for the whole text."""
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
