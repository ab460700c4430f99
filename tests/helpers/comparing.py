"""Small data for the tests of `compare`, and fakes for its slow parts."""

from pathlib import Path

import srsly
from helpers.pipelines import make_docs, save_bilm
from spacy.tokens import DocBin

from spacy_elmo.compare import comparison
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
    """Write three .spacy files and a biLM to a folder, and return the folder."""
    docs = make_docs()
    DocBin(docs=docs * 2).to_disk(folder / "train.spacy")
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    DocBin(docs=docs[:3]).to_disk(folder / "test.spacy")
    save_bilm(folder / "bilm")
    return folder


def make_overrides(data, **given):
    """Return config settings for short trainings on the files of save_data."""
    return {
        **{f"paths.{name}": str(data / f"{name}.spacy") for name in ("train", "dev")},
        "elmo.bilm": str(data / "bilm"),
        "nlp.lang": "xx",  # because its tokenizer is created quickly
        "training.max_steps": 7,
        "training.eval_frequency": 7,
        "training.optimizer.learn_rate": 0.002,
        # The baseline has the first of these settings, the config with ELMo the second.
        "components.tok2vec.model.embed.rows": [50] * 4,
        "components.ner.model.tok2vec.embed.rows": [50],
        **given,
    }


def make_command(data, output, **given):
    """Return the arguments of a `compare` command, which follow `spacy elmo`."""
    overrides = make_overrides(data, **given)
    options = [f"--{key}={value}" for key, value in overrides.items()]
    return ["compare", *PAIR, "--output", output, *options]


def compare(data, output, options=None, lines=None, **given):
    """Run a comparison without the command line.

    options (dict): Replaces some of the options of the comparison.
    lines (list[str]): Gets the lines that the command would print.
    given: Config settings to override.
    RETURNS (dict): The contents of compare.json.
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
    """Map the name of each run to its result."""
    return {path.stem: srsly.read_json(path) for path in folder.glob("runs/*.json")}


class InProcessPool:
    """Replaces WorkerPool, and does the jobs in this process, the last one first."""

    def __init__(self, n_process, logs, gpu_id=-1):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def do_jobs(self, jobs):
        for index in reversed(range(len(jobs))):
            yield index, JOBS[jobs[index].action](**jobs[index].arguments)


def compare_in_process(monkeypatch):
    """Let `compare` train in this process, and invent the speeds of pipelines."""
    monkeypatch.setattr(comparison, "WorkerPool", InProcessPool)
    monkeypatch.setitem(JOBS, "speed", lambda models, **_: [1.0] * len(models))


class FakeTraining:
    """Replaces the job that trains a pipeline, and returns invented scores.

    trained (list[str]): The names of the runs for which the job was called.
    failing (set[str]): The names of the runs that must fail.
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
        """Return the names of the runs that were trained since the last call."""
        trained, self.trained = self.trained, []
        return trained
