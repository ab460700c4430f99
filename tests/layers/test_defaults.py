"""Check that what a config leaves out is what the configs of the package set."""

from pathlib import Path

import pytest
from helpers.pipelines import write_short
from spacy import registry
from spacy.util import load_config, load_model_from_config
from thinc.api import Config

CONFIGS = Path(__file__).parents[2] / "configs"
TASKS = ["tagging", "parsing", "ner", "textcat", "spancat"]


def load(name):
    return load_config(CONFIGS / f"{name}_elmo.cfg", interpolate=True)


def describe(model):
    """Return the name, sizes and attributes of each layer of a model."""
    return [
        (
            node.name,
            {name: node.maybe_get_dim(name) for name in node.dim_names},
            {
                key: value
                for key, value in node.attrs.items()
                if isinstance(value, int | float | str) or key == "mix"
            },
        )
        for node in model.walk()
    ]


@pytest.mark.parametrize("task", TASKS)
def test_the_component_has_the_settings_of_the_configs(task):
    nlp = load_model_from_config(
        Config().from_str(write_short("spacy-elmo.Tok2VecWithElmo.v1")), auto_fill=True
    )
    assert nlp.config["components"]["elmo"] == load(task)["components"]["elmo"]


def test_a_tok2vec_without_settings_is_that_of_the_tagging_config():
    written = load("tagging")["components"]["tagger"]["model"]["tok2vec"]
    short = {"@architectures": "spacy-elmo.Tok2VecWithElmo.v1"}
    ours, theirs = (registry.resolve({"x": x})["x"] for x in (short, written))
    assert describe(ours) == describe(theirs)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {
            "elmo": {"@architectures": "spacy-elmo.ElmoListener.v1"},
            "mix": {"@architectures": "spacy-elmo.ElmoMix.v1"},
        },
    ],
)
def test_elmo_alone_has_the_same_mix(parts):
    short = {"@architectures": "spacy-elmo.ElmoTok2Vec.v1", **parts}
    written = {
        **short,
        "elmo": {"@architectures": "spacy-elmo.ElmoListener.v1", "upstream": "*"},
        "mix": load("tagging")["components"]["tagger"]["model"]["tok2vec"]["mix"],
    }
    ours, theirs = (registry.resolve({"x": x})["x"] for x in (short, written))
    assert describe(ours) == describe(theirs)
