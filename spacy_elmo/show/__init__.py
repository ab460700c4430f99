"""Pictures of word vectors for notebooks, as HTML that needs nothing else.

    from spacy_elmo import show
    show.senses(nlp, ["He threw a stick.", "Stick to the plan."], "stick")
    show.similarity(nlp("A first sentence."), nlp("A second one."))
    show.layers(doc)
    show.surprisal(doc)

Each function returns a Picture: a notebook shows it, and `save("picture.html")` writes
it to a file.
"""

from .heat_maps import layers, similarity
from .picture import Picture
from .shaded_words import surprisal
from .word_uses import senses

__all__ = ["Picture", "layers", "senses", "similarity", "surprisal"]
