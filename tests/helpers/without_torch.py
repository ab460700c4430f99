"""Use everything but training where torch cannot be imported.

Where torch is installed, import helpers/block_torch.py first."""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
import spacy
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.training import Example

from spacy_elmo import load_bilm
from spacy_elmo.bilm import (
    BiLMConfig,
    BiLMData,
    BytesConfig,
    Lexicon,
    LSTMConfig,
    NumpyBiLM,
    SoftmaxConfig,
)
from spacy_elmo.bilm.shapes import expected_shapes

from .command import call, refused

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "assets"
FOLDERS = ("analysis", "cli", "compare", "embedding", "explore", "gold", "pipeline")
EXTRA = "pip install 'spacy-elmo[train]'"
TEXT = "the cat sat on the mat .\nthe bank of the river\na bank gave money ."


def make_bilm(folder):
    """Save a tiny biLM with a softmax and random weights."""
    vocab = ["<S>", "</S>", "<UNK>", *sorted(set(TEXT.split()))]
    config = BiLMConfig(
        BytesConfig(char_dim=3, filters=[[1, 4], [3, 5]]),
        LSTMConfig(8, 5),
        SoftmaxConfig(len(vocab)),
        training={"lang": "en"},
    )
    random = np.random.default_rng(0)
    arrays = {
        name: random.normal(0, 0.5, shape).astype(np.float32)
        for name, shape in expected_shapes(config, Lexicon()).items()
    }
    NumpyBiLM(BiLMData(config, arrays, vocab=vocab)).save(folder)
    return folder


def check_imports():
    """Import all modules of the folders in which nothing is trained."""
    for folder in FOLDERS:
        package = import_module(f"spacy_elmo.{folder}")
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


def check_python(bilm_folder):
    bilm = load_bilm("en_elmo_sm")
    (layers,) = bilm.embed([["A", "sentence"]])
    assert layers.shape == (3, 2, 384) and layers.any()
    bilm.embed([["A", "sentence"]], stateful=True)
    bilm = load_bilm(bilm_folder, engine="numpy")
    assert bilm.predict(["the", "cat"], 0, 3)
    assert bilm.surprisal([["the", "cat"]])[0].shape == (2, 2)
    for settings in ({"engine": "torch"}, {"precision": "int8"}, {"device": "cuda"}):
        assert EXTRA in fails(lambda more=settings: load_bilm(bilm_folder, **more))
    manylangs = ROOT / "tests" / "fixtures" / "manylangs"
    assert EXTRA in fails(lambda: load_bilm(manylangs))


def fails(function):
    try:
        function()
    except ValueError as error:
        assert "\n" not in str(error)
        return str(error)
    raise AssertionError("expected a ValueError")


def check_pipeline(output):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    doc = nlp("Let's stick to improvisation in this skit.")
    assert doc.tensor.shape == (len(doc), 384) and doc.tensor.any()
    listener = {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "elmo": {"@architectures": "spacy-elmo.ElmoListener.v1"},
        "mix": {"@architectures": "spacy-elmo.ElmoMix.v1"},
    }
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}
    nlp.add_pipe("tagger", config={"model": model})
    gold = [("a b c", {"tags": ["X", "Y", "X"]}), ("c b", {"tags": ["X", "Y"]})]
    examples = [Example.from_dict(nlp.make_doc(text), tags) for text, tags in gold]
    optimizer = nlp.initialize(lambda: examples)
    losses = [nlp.update(examples, sgd=optimizer)["tagger"] for _ in range(2)]
    assert losses[1] < losses[0]
    nlp.to_disk(output / "pipeline")
    again = spacy.load(output / "pipeline")
    for text, _ in gold:
        one, two = nlp(text), again(text)
        np.testing.assert_allclose(one.tensor, two.tensor, rtol=0, atol=1e-5)
        assert [token.tag_ for token in one] == [token.tag_ for token in two]
    tuned = spacy.blank("en")
    tuned.add_pipe("elmo", config={"frozen": False})
    assert EXTRA in fails(lambda: tuned("a"))


def check_training(output, bilm_folder):
    nlp = spacy.blank("en")
    docs = [nlp.make_doc(line) for line in TEXT.split("\n")]
    for doc in docs:
        for token in doc:
            token.tag_ = token.text[0].upper()
    DocBin(docs=docs).to_disk(output / "train.spacy")
    overrides = {
        "paths.train": str(output / "train.spacy"),
        "paths.dev": str(output / "train.spacy"),
        "elmo.bilm": str(bilm_folder),
        "training.max_steps": 2,
        "training.eval_frequency": 2,
    }
    config = ROOT / "configs" / "tagging_elmo.cfg"
    train(config, output / "trained", overrides=overrides)
    assert spacy.load(output / "trained" / "model-last")("the cat")[1].tag_


def check_commands(output, bilm):
    text = output / "text.txt"
    text.write_text(TEXT, "utf8")
    treebank, senses = ASSETS / "treebank" / "en", ASSETS / "senses" / "en.jsonl"
    tables = output / "tables"
    tables.mkdir()
    commands = [
        ("embed", bilm, text, output / "vectors.hdf5", "--tokenized"),
        ("embed", bilm, text, output / "vectors.parquet"),
        ("convert", bilm, output / "hdf5", "--to", "hdf5"),
        ("convert", output / "hdf5", output / "int8", "--dtype", "int8"),
        ("info", output / "int8"),
        ("info", "en_elmo_sm"),
        ("info", output / "trained" / "model-last"),
        ("senses", bilm, senses, "--output", tables / "senses.json"),
        ("neighbors", bilm, text, "--query", "the bank", "--word", "bank"),
        ("probe", bilm, treebank / "train.conllu", treebank / "dev.conllu")
        + ("--output", tables / "probe.json", "--limit", 20),
        ("evaluate", bilm, text, "--tokenized", "--output", tables / "ppl.json"),
        ("evaluate", bilm, text, "--stream"),
        ("report", tables),
    ]
    for arguments in commands:
        done = call(*arguments)
        assert done.exit_code == 0, (arguments, done.output, done.exception)
    config = ROOT / "configs" / "pretrain_demo.cfg"
    assert EXTRA in refused("pretrain", config, "--output", output / "new")
    more = ("--gpu-id", 0)
    assert EXTRA in refused("embed", bilm, text, output / "x.hdf5", *more)


def main(output):
    check_imports()
    bilm = make_bilm(output / "bilm")
    check_python(bilm)
    check_pipeline(output)
    check_training(output, bilm)
    check_commands(output, bilm)
