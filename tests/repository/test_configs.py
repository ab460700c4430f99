"""Train with the configs in configs/, which have spaCy's CNN alone or with ELMo."""

import io
from pathlib import Path

import pytest
import spacy
from helpers.tasks import GOLD, make_examples, mixes_of, save_tiny
from spacy.cli.debug_config import debug_config
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config, load_model_from_config
from thinc.api import Config

CONFIGS = Path(__file__).parents[2] / "configs"
TASKS = {
    "tagging": ["tagger"],
    "parsing": ["tagger", "morphologizer", "parser"],
    "ner": ["ner"],
    "textcat": ["textcat"],
    "spancat": ["spancat"],
}
METRICS = {
    "tagging": ["tag_acc"],
    "parsing": ["tag_acc", "pos_acc", "dep_las"],
    "ner": ["ents_f"],
    "textcat": ["cats_macro_f"],
    "spancat": ["spans_sc_f"],
}
# The CNN of the baseline embeds four attributes. With ELMo, these components leave out
# the first ones: the parser the word itself, NER everything except the shape.
LEFT_OUT = {"parser": 1, "ner": 3}
STEPS = {"tagging": 20, "parsing": 20, "ner": 60, "textcat": 8, "spancat": 80}
PLACES = ["input", "output", "both"]
# Each tuple is the name of a config, and overrides as on the command line.
ALL = [(f"{task}_baseline", {}) for task in TASKS] + [
    (f"{task}_elmo", {"elmo.where": where}) for task in TASKS for where in PLACES
]
# Training takes seconds: only the tagger is trained with ELMo in each place, and only
# one training is among the quick tests.
TRAINED = [
    (name, given)
    for name, given in ALL
    if name == "tagging_elmo" or given.get("elmo.where", "both") == "both"
]
QUICK = ("tagging_elmo", {"elmo.where": "both"})


def name_config(part):
    """Name a config, or its overrides, in the name of a test."""
    return part if isinstance(part, str) else " ".join(part.values()) or "no ELMo"


def path_of(name):
    return CONFIGS / f"{name}.cfg"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write docs with annotations for all tasks, and a biLM. Return the folder."""
    folder = tmp_path_factory.mktemp("configs")
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(folder / "docs.spacy")
    save_tiny(folder / "bilm")
    return folder


@pytest.fixture
def settings(folder):
    """Return a function that adds the paths of docs and biLM to the overrides of a
    config."""

    def add(name, given):
        docs = str(folder / "docs.spacy")
        added = {"paths.train": docs, "paths.dev": docs, **given}
        if name.endswith("elmo"):
            added["elmo.bilm"] = str(folder / "bilm")
        return added

    return add


@pytest.mark.parametrize("lang", ["ko", pytest.param("en", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "given"), ALL, ids=name_config)
def test_debug_config(name, given, lang, settings):
    debug_config(path_of(name), overrides=settings(name, {**given, "nlp.lang": lang}))


@pytest.mark.parametrize("task", TASKS)
def test_debug_config_rejects_an_unknown_place(task, settings):
    name = f"{task}_elmo"
    with pytest.raises(SystemExit):
        debug_config(path_of(name), overrides=settings(name, {"elmo.where": "nowhere"}))


@pytest.mark.parametrize(
    "name", [f"{t}_{k}" for t in TASKS for k in ("baseline", "elmo")]
)
def test_config_is_complete(name):
    config = load_config(path_of(name))
    assert load_model_from_config(config, auto_fill=True).config == config


@pytest.mark.parametrize("task", TASKS)
def test_baseline_and_elmo_configs_differ_only_in_elmo(task):
    ours, theirs = (
        Config().from_disk(path_of(f"{task}_{kind}"), interpolate=True)
        for kind in ("elmo", "baseline")
    )
    assert ours["nlp"].pop("pipeline") == ["elmo", *TASKS[task]]
    assert theirs["nlp"].pop("pipeline") == ["tok2vec", *TASKS[task]]
    shared = theirs["components"].pop("tok2vec")["model"]
    del ours["components"]["elmo"], ours["elmo"]
    for name in TASKS[task]:
        with_elmo = ours["components"][name]["model"].pop("tok2vec")
        embed = dict(shared["embed"])
        for key in ("attrs", "rows"):
            embed[key] = embed[key][LEFT_OUT.get(name, 0) :]
        assert with_elmo["embed"] == embed
        assert with_elmo["encode"] == shared["encode"]
        listener = theirs["components"][name]["model"].pop("tok2vec")
        assert listener["@architectures"] == "spacy.Tok2VecListener.v1"
        assert listener["width"] == shared["encode"]["width"]
    assert ours == theirs


@pytest.mark.parametrize("task", TASKS)
def test_settings_of_elmo_reach_all_components(task, folder):
    """Override all settings in the section [elmo], as on the command line."""
    given = {
        "bilm": str(folder / "bilm"),
        "l2": 0.5,
        "where": "both",
        "fixed": [0.0, 0.25, 0.75],
        "layer_norm": True,
        "dropout": 0.3,
    }
    path = path_of(f"{task}_elmo")
    assert given.keys() == Config().from_disk(path)["elmo"].keys()
    overrides = {f"elmo.{name}": value for name, value in given.items()}
    nlp = load_model_from_config(load_config(path, overrides))
    assert nlp.get_pipe("elmo").model.shims[0].source == given["bilm"]
    for name in TASKS[task]:
        mixes = mixes_of(nlp, name)
        assert len(mixes) == 2  # at input and output
        for node in mixes:
            for key in ("l2", "fixed", "layer_norm", "dropout"):
                assert getattr(node.attrs["mix"], key) == given[key]


def embeds(task, with_elmo):
    """Return a tuple for each embedding layer of a config: its place in [components]
    and the number of its attributes."""
    if not with_elmo:
        return [("tok2vec.model", 4)]
    return [(f"{c}.model.tok2vec", 4 - LEFT_OUT.get(c, 0)) for c in TASKS[task]]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        pytest.param(*each, marks=[] if each == QUICK else pytest.mark.slow)
        for each in TRAINED
    ],
    ids=name_config,
)
def test_training_learns_and_a_saved_pipeline_predicts_the_same(
    name, given, settings, tmp_path
):
    task = name.partition("_")[0]
    overrides = settings(name, given)
    overrides.update(
        {
            "training.max_steps": STEPS[task],
            "training.eval_frequency": STEPS[task],
            "training.dropout": 0.0,
            "training.optimizer.learn_rate": 0.01,
        }
    )
    if task == "parsing":
        overrides["components.parser.min_action_freq"] = 1
    for place, n_attrs in embeds(task, given):
        overrides[f"components.{place}.embed.rows"] = [300] * n_attrs  # is faster
    nlp = init_nlp(load_config(path_of(name), overrides))
    examples = make_examples(nlp)
    before = nlp.evaluate(examples)
    nlp, path = train(nlp, tmp_path, stdout=io.StringIO())
    after = nlp.evaluate(make_examples(nlp))
    for metric in METRICS[task]:
        assert after[metric] > before[metric] + 0.15
    loaded = spacy.load(path)
    for example in examples:
        text = example.reference.text
        for component in TASKS[task]:
            gold = GOLD[component]
            assert gold(loaded(text)) == gold(nlp(text))
