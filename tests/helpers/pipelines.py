"""Small pipelines with `elmo`, and functions that run spaCy's commands on them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import spacy
import torch
from helpers.command import run_spacy
from spacy.cli.init_config import fill_config
from spacy.tokens import Doc, DocBin
from thinc.api import Config

from spacy_elmo.bilm import (
    BiLM,
    BiLMConfig,
    BytesConfig,
    LSTMConfig,
    SoftmaxConfig,
    load_bilm,
)
from spacy_elmo.layers.elmo_model import get_shim

# Each token has a word, tag, head, dependency label and entity label.
SENTENCES = [
    "Ann|NNP|1|nsubj|PER saw|VBD|1|ROOT| Bob|NNP|1|dobj|PER in|IN|1|prep| "
    "Paris|NNP|3|pobj|LOC .|.|1|punct|",
    "The|DT|1|det| saw|NN|2|nsubj| cut|VBD|2|ROOT| the|DT|4|det| wood|NN|2|dobj| "
    ".|.|2|punct|",
    "Bob|NNP|1|nsubj|PER likes|VBZ|1|ROOT| green|JJ|3|amod| tea|NN|1|dobj| "
    ".|.|1|punct|",
    "In|IN|4|prep| Rome|NNP|0|pobj|LOC the|DT|3|det| rain|NN|4|nsubj| "
    "stopped|VBD|4|ROOT| .|.|4|punct|",
    "She|PRP|1|nsubj| left|VBD|1|ROOT| Paris|NNP|1|dobj|LOC with|IN|1|prep| "
    "Ann|NNP|3|pobj|PER .|.|1|punct|",
]

# Texts that are not in the training data above.
TEXTS = ["Ann left Rome .", "The green wood stopped the rain in Paris .", "Tea"]


def make_docs():
    vocab = spacy.blank("xx").vocab
    docs = []
    for sentence in SENTENCES:
        columns = zip(*(token.split("|") for token in sentence.split()))
        words, tags, heads, deps, ents = map(list, columns)
        docs.append(
            Doc(
                vocab,
                words=words,
                tags=tags,
                heads=[int(head) for head in heads],
                deps=deps,
                ents=[f"B-{ent}" if ent else "O" for ent in ents],
            )
        )
    return docs


def save_bilm(folder, seed=0):
    """Save a tiny biLM with random weights that are large enough for a tagger to learn
    from its vectors."""
    torch.manual_seed(seed)
    encoder = BytesConfig(char_dim=4, filters=[[1, 4], [2, 8]])
    bilm = BiLM(BiLMConfig(encoder, LSTMConfig(dim=12, projection_dim=6)))
    with torch.no_grad():
        for weight in bilm.parameters():
            weight.mul_(3)
    bilm.save(folder)
    return folder


def pipeline_with_surprisal(folder, words):
    """Return an untrained pipeline with `elmo`, which computes surprisal too.

    folder (Path): An empty folder, to which a tiny biLM with random weights is saved.
    words (list[str]): The words that it can predict.
    """
    torch.manual_seed(0)
    vocab = ["<S>", "</S>", "<UNK>", *words]
    encoder = BytesConfig(char_dim=3, filters=[[1, 4], [2, 6]])
    lstm = LSTMConfig(dim=8, projection_dim=5)
    BiLM(BiLMConfig(encoder, lstm, SoftmaxConfig(len(vocab))), vocab=vocab).save(folder)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": str(folder), "surprisal": True})
    return nlp


# Parts of configs


def tok2vec_with_elmo(where="input"):
    # The embedding uses the attribute LANG, which is the same for all words, so a task
    # can distinguish words only by their ELMo vectors.
    return {
        "@architectures": "spacy-elmo.Tok2VecWithElmo.v1",
        "where": where,
        **embed_and_encode("LANG"),
        "elmo": {"@architectures": "spacy-elmo.ElmoListener.v1"},
        "mix": {"@architectures": "spacy-elmo.ElmoMix.v1"},
    }


def elmo_tok2vec():
    return {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "elmo": {"@architectures": "spacy-elmo.ElmoListener.v1"},
        "mix": {"@architectures": "spacy-elmo.ElmoMix.v1"},
    }


def embed_and_encode(attribute):
    return {
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2",
            "width": 16,
            "attrs": [attribute],
            "rows": [50],
            "include_static_vectors": False,
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2",
            "width": 16,
            "depth": 1,
            "window_size": 1,
            "maxout_pieces": 2,
        },
    }


def tagger(tok2vec):
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    return {"factory": "tagger", "model": model}


def parser(tok2vec):
    # By default, labels with fewer than 30 occurrences become "dep".
    model = transitions("parser", tok2vec)
    return {"factory": "parser", "min_action_freq": 1, "model": model}


def ner(tok2vec):
    return {"factory": "ner", "model": transitions("ner", tok2vec)}


def transitions(state_type, tok2vec):
    return {
        "@architectures": "spacy.TransitionBasedParser.v2",
        "state_type": state_type,
        "extra_state_tokens": False,
        "hidden_width": 16,
        "maxout_pieces": 2,
        "use_upper": True,
        "tok2vec": tok2vec,
    }


def elmo(**settings):
    return {"factory": "elmo", **settings}


def make_config(components, *, training=None, initialize=None):
    return Config(
        {
            "paths": {"train": None, "dev": None, "bilm": None},
            "nlp": {"lang": "en", "pipeline": list(components)},
            "components": components,
            "training": {
                "max_steps": 120,
                "eval_frequency": 60,
                "dropout": 0.0,
                "optimizer": {"@optimizers": "Adam.v1", "learn_rate": 0.02},
                **(training or {}),
            },
            "initialize": initialize or {},
        }
    )


def write_short(tok2vec, settings=""):
    """Return the text of a short config with `elmo` and a tagger.

    tok2vec (str): The architecture of the tagger's tok2vec. Its settings may follow.
    settings (str): Lines with settings of `elmo`.
    """
    return f"""
[nlp]
lang = "en"
pipeline = ["elmo", "tagger"]

[components]

[components.elmo]
factory = "elmo"
{settings}

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "{tok2vec}"
"""


# Commands


def run_python(*args, cwd=None, python=sys.executable):
    """Run Python and return what it printed to stdout."""
    done = subprocess.run(
        [python, *map(str, args)],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write_config(folder, components, **sections):
    """Write a config and its training data to a folder."""
    folder.mkdir(exist_ok=True)
    DocBin(docs=make_docs()).to_disk(folder / "docs.spacy")
    make_config(components, **sections).to_disk(folder / "partial.cfg")
    fill_config(folder / "config.cfg", folder / "partial.cfg", silent=True)
    return folder / "config.cfg"


def paths(config, bilm=None):
    """Return the options that set the paths in a config."""
    docs = config.parent / "docs.spacy"
    options = ["--paths.train", docs, "--paths.dev", docs]
    return options if bilm is None else [*options, "--paths.bilm", bilm]


def train(folder, components, *, bilm=None, **sections):
    """Run `spacy train`.

    RETURNS (Path): The folder of the best pipeline.
    """
    config = write_config(folder, components, **sections)
    run_spacy("train", config, "--output", folder, *paths(config, bilm))
    return folder / "model-best"


class Trained(NamedTuple):
    """The folder of a trained pipeline, and the biLM that it was trained with."""

    path: Path
    bilm: BiLM


def train_shared(folder):
    """Train a tagger, a parser and an entity recognizer that share one `elmo`.

    The tagger adds the ELMo vectors at the input of its tok2vec, the parser at the
    output, the entity recognizer at both. Afterwards the folder of the biLM is deleted.
    """
    source = save_bilm(folder / "bilm")
    components = {
        "elmo": elmo(bilm="${paths.bilm}"),
        "tagger": tagger(tok2vec_with_elmo("input")),
        "parser": parser(tok2vec_with_elmo("output")),
        "ner": ner(tok2vec_with_elmo("both")),
    }
    trained = Trained(train(folder, components, bilm=source), load_bilm(source))
    shutil.rmtree(source)
    return trained


# Results


def predictions(nlp):
    return [doc.to_json() for doc in nlp.pipe(TEXTS)]


def vectors(nlp):
    return np.concatenate([doc.tensor for doc in nlp.pipe(TEXTS)])


def mean_of_layers(bilm):
    """Compute what doc.tensor should be for all TEXTS, with the biLM and without spaCy.

    RETURNS (np.ndarray): (tokens of all texts, width)
    """
    return np.concatenate([bilm.embed([text.split()])[0].mean(0) for text in TEXTS])


def get_bilm(nlp):
    return get_shim(nlp.get_pipe("elmo").model).bilm


def assert_close(found, expected, tolerance=1e-6):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def same_weights(bilm, other):
    """Return whether two biLMs have exactly the same weights."""
    mine, theirs = bilm.state_dict(), other.state_dict()
    assert mine.keys() == theirs.keys()
    return all(torch.equal(mine[name], theirs[name]) for name in mine)
