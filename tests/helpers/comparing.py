"""What the tests of `compare` compare."""

from pathlib import Path

from helpers.pipelines import make_docs, save_bilm
from spacy.tokens import DocBin

CONFIGS = Path(__file__).parents[2] / "configs"
PAIR = (CONFIGS / "ner_baseline.cfg", CONFIGS / "ner_elmo.cfg")


def save_data(folder):
    """Write data and a biLM. RETURNS (Path): The folder."""
    docs = make_docs()
    DocBin(docs=docs * 2).to_disk(folder / "train.spacy")
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    DocBin(docs=docs[:3]).to_disk(folder / "test.spacy")
    save_bilm(folder / "bilm")
    return folder


def overrides(data, **given):
    return {
        **{f"paths.{name}": str(data / f"{name}.spacy") for name in ("train", "dev")},
        "elmo.bilm": str(data / "bilm"),
        "nlp.lang": "xx",  # which is quickly made
        "training.max_steps": 7,
        "training.eval_frequency": 7,
        "training.optimizer.learn_rate": 0.002,
        # One of these is in each config.
        "components.tok2vec.model.embed.rows": [50] * 4,
        "components.ner.model.tok2vec.embed.rows": [50],
        **given,
    }


def command(data, output, **given):
    """What follows `spacy elmo`."""
    options = [f"--{key}={value}" for key, value in overrides(data, **given).items()]
    return ["compare", *PAIR, "--output", output, *options]
