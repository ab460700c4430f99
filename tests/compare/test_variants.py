"""Test which variants `compare` trains, and with which configs."""

from pathlib import Path

import pytest
from helpers.comparing import CONFIGS, PAIR, make_overrides

from spacy_elmo.compare.comparison import Comparison
from spacy_elmo.compare.config_pair import ConfigPair
from spacy_elmo.compare.options import Options


@pytest.fixture(scope="module")
def pair(data):
    """Return the two configs, with a path of word vectors."""
    given = {"paths.vectors": str(data / "bilm")}
    return ConfigPair(*PAIR, make_overrides(data, **given))


def plan(pair, **options):
    return Comparison(pair, Options(**options), Path("nowhere"), print).runs


def test_configs_of_all_variants(pair):
    runs = plan(pair, seeds=[4])
    found = {run.variant.name: run.config.interpolate() for run in runs}
    settings = {
        name: tuple(config["elmo"][key] for key in ("where", "l2", "fixed"))
        for name, config in found.items()
        if "elmo" in config
    }
    assert settings == {
        "last": ("input", 0.001, [0.0, 0.0, 1.0]),
        "mean": ("input", 0.001, [1 / 3] * 3),
        "mix-1": ("input", 1.0, None),
        "mix-0.001": ("input", 0.001, None),
        "output": ("output", 0.001, None),
        "whole": ("both", 0.001, None),
        "both": ("both", 0.001, None),
    }
    assert list(found) == ["baseline", "vectors", *settings]
    for name, config in found.items():
        has_vectors = name == "vectors"
        assert (config["initialize"]["vectors"] is not None) == has_vectors
        if "elmo" not in config:
            embed = config["components"]["tok2vec"]["model"]["embed"]
            assert embed["include_static_vectors"] == has_vectors
        assert config["training"]["seed"] == 4
        assert config["training"]["max_steps"] == 7
    for name in ("mix-1", "mix-0.001"):
        tok2vec = found[name]["components"]["ner"]["model"]["tok2vec"]
        assert tok2vec["mix"]["l2"] == float(name.removeprefix("mix-"))


@pytest.mark.parametrize("names", [["baseline"], ["vectors", "baseline"]])
def test_vectors_that_are_given_add_their_variant(names, pair):
    runs = plan(pair, variants=names)
    assert {run.variant.name for run in runs} == {"baseline", "vectors"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["baseline", "both"], {"baseline", "both"}),
        (["last", "both", "mix-0.001", "baseline"], {"baseline", "mix-0.001"}),
        (["last", "output"], {"output"}),
    ],
)
def test_variants_with_less_data_by_default(names, expected, pair):
    runs = plan(pair, variants=names, shares=[1, 0.1])
    assert {run.variant.name for run in runs if run.share < 1} == expected


@pytest.mark.parametrize("task", ["ner", "parsing", "tagging", "textcat", "spancat"])
def test_whole_cnn_is_the_baselines(task, data):
    pair = ConfigPair(
        *(CONFIGS / f"{task}_{kind}.cfg" for kind in ("baseline", "elmo")),
        {
            k: v
            for k, v in make_overrides(data).items()
            if not k.startswith("components.")
        },
    )
    runs = plan(pair, seeds=[0])
    found = {run.variant.name: find_cnns(run.config["components"]) for run in runs}
    (theirs,) = found["baseline"]
    for name in found.keys() & {"output", "whole"}:
        assert found[name] == [theirs] * len(pair.task.split(", "))
    assert found["both"] == found["mix-1"] == find_cnns(pair.elmo["components"])
    # In some configs the CNN with ELMo is smaller than that of the baseline. Only these
    # have the variant "whole", which gives it the size of the baseline.
    assert ("whole" in found) == any(cnn != theirs for cnn in found["both"])
    assert ("whole" in found) == (task in ("ner", "parsing"))


def find_cnns(section):
    """Return the configs of embed and encode of each tok2vec in a section."""
    if "embed" in section:
        return [(section["embed"], section["encode"])]
    inner = [value for value in section.values() if isinstance(value, dict)]
    return [found for value in inner for found in find_cnns(value)]
