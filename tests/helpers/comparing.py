"""Data and stand-ins for the tests of `compare`."""

from pathlib import Path

import srsly
from helpers.pipelines import make_docs, save_bilm
from spacy.tokens import DocBin

from spacy_elmo.compare.comparison import Comparison
from spacy_elmo.compare.config_pair import ConfigPair
from spacy_elmo.compare.jobs import JOBS
from spacy_elmo.compare.options import Options
from spacy_elmo.results import as_json

CONFIGS = Path(__file__).parents[2] / "configs"
PAIR = (CONFIGS / "ner_baseline.cfg", CONFIGS / "ner_elmo.cfg")
VARIANTS = ["baseline", "last", "mix-0.001", "both"]
SEEDS = [3, 5]
SHARES = [1.0, 0.5]


def save_data(folder):
    """Write docs and a biLM into a folder, and return the folder."""
    docs = make_docs()
    DocBin(docs=docs * 2).to_disk(folder / "train.spacy")
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    DocBin(docs=docs[:3]).to_disk(folder / "test.spacy")
    save_bilm(folder / "bilm")
    return folder


def make_overrides(data, **given):
    """Return settings that make trainings small."""
    return {
        **{f"paths.{name}": str(data / f"{name}.spacy") for name in ("train", "dev")},
        "elmo.bilm": str(data / "bilm"),
        "nlp.lang": "xx",  # its tokenizer is created quickly
        "training.max_steps": 7,
        "training.eval_frequency": 7,
        "training.optimizer.learn_rate": 0.002,
        # Each config has one of these.
        "components.tok2vec.model.embed.rows": [50] * 4,
        "components.ner.model.tok2vec.embed.rows": [50],
        **given,
    }


def make_command(data, output, **given):
    """Return the arguments after `spacy elmo`."""
    overrides = make_overrides(data, **given)
    options = [f"--{key}={value}" for key, value in overrides.items()]
    return ["compare", *PAIR, "--output", output, *options]


def compare(data, output, options=None, lines=None, **given):
    """Run a comparison without the command line, and return the data of its table.

    lines: A list that gets the printed lines.
    given: Settings to override.
    """
    pair = ConfigPair(*PAIR, make_overrides(data, **given))
    say = [].append if lines is None else lines.append
    options = {
        "variants": VARIANTS,
        "seeds": SEEDS,
        "shares": SHARES,
        **(options or {}),
    }
    return as_json(Comparison(pair, Options(**options), output, say).compare())


def load_runs(folder):
    """Load the results of all runs, by name."""
    return {path.stem: srsly.read_json(path) for path in folder.glob("runs/*.json")}


class InProcessPool:
    """Replaces WorkerPool: does jobs in this process, the last one first."""

    def __init__(self, n_process, logs, gpu_id=-1):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def do_jobs(self, jobs):
        for index in reversed(range(len(jobs))):
            yield index, JOBS[jobs[index].action](**jobs[index].arguments)


class FakeTraining:
    """Replaces the job that trains a pipeline.

    trained (list[str]): The names of the runs that were to be trained.
    failing (set[str]): The names of the runs that fail.
    """

    def __init__(self):
        self.trained = []
        self.failing = set()

    def __call__(self, *, folder, **rest):
        name = Path(folder).name
        self.trained.append(name)
        if name in self.failing:
            raise ValueError("no luck")
        score = int.from_bytes(name.encode(), "big") % 97 / 100
        scores = {"ents_f": score, "token_acc": 1.0}
        return {"scores": scores, "test_scores": None, "mixes": [], "seconds": 2.0}

    def take_trained(self):
        """Return what was trained since the last call."""
        trained, self.trained = self.trained, []
        return trained
