"""What the processes of a comparison do: train a run, compute layers, measure speed."""

import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_model_from_config, registry, resolve_dot_names
from thinc.api import Config

from ..layers.elmo_model import get_shim
from ..pipeline.component import Elmo
from ..pipeline.mixes import find_mixes

ROUNDS = 5
MAX_WORDS = 10_000  # of the texts that speed is measured on
BATCH = 128  # docs


def train_run(
    config: str,
    folder: str,
    keep: str | None,
    restore: dict[str, dict[str, Any]],
    gpu_id: int,
) -> dict[str, Any]:
    """Train a pipeline and score the best one.

    config (str): The text of the config.
    folder (str): To work in; gone afterwards.
    keep (str | None): Where the best pipeline goes, if it is to be kept.
    restore (dict[str, dict[str, Any]]): Settings of components, as the pipeline that is
        kept should have them.
    RETURNS (dict[str, Any]): Scores, what the mixes have learned, and the seconds it
        took.
    """
    start = time.perf_counter()
    work = Path(folder)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    settings = Config().from_str(config, interpolate=False)
    train(init_nlp(settings, use_gpu=gpu_id), work, use_gpu=gpu_id, stdout=sys.stdout)
    nlp = spacy.load(work / "model-best")
    plain = settings.interpolate()
    result: dict[str, Any] = {
        "scores": score(nlp, dev_corpus(plain)),
        "test_scores": None,
        "mixes": [
            {"task": task, "s": shares, "gamma": gamma}
            for task, shares, gamma in find_mixes(nlp)
        ],
    }
    test = plain.get("paths", {}).get("test")
    if test is not None:
        result["test_scores"] = score(nlp, dev_corpus(plain, test))
    if keep is not None:
        change_settings(work / "model-best" / "config.cfg", restore)
        shutil.rmtree(keep, ignore_errors=True)
        Path(keep).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work / "model-best", keep)
    shutil.rmtree(work)
    result["seconds"] = round(time.perf_counter() - start, 1)
    return result


def score(nlp: Language, corpus: Callable[[Language], Any]) -> dict[str, float]:
    """RETURNS (dict[str, float]): All scores that are one number."""
    scores = nlp.evaluate(list(corpus(nlp)))
    return {
        name: float(value)
        for name, value in scores.items()
        if isinstance(value, (int, float)) and name != "speed"
    }


def dev_corpus(config: Config, path: str | None = None) -> Callable[..., Any]:
    """config (Config): Without variables. path (str | None): To read instead.
    RETURNS (Callable): The corpus that training is evaluated on."""
    section: Any = config
    for part in config["training"]["dev_corpus"].split("."):
        section = section[part]
    section = section if path is None else {**section, "path": path}
    return registry.resolve({"corpus": section})["corpus"]


def change_settings(path: Path, settings: dict[str, dict[str, Any]]) -> None:
    """settings (dict[str, dict[str, Any]]): Of components, for a config on disk."""
    config = Config().from_disk(path, interpolate=False)
    for name, values in settings.items():
        config["components"][name].update(values)
    config.to_disk(path)


def compute_layers(config: str, part: int, n_parts: int) -> int:
    """Put the layers of a part of the docs of all corpora into the cache.

    config (str): The text of a config whose `elmo` has a cache_folder.
    RETURNS (int): How many words it were.
    """
    settings = Config().from_str(config, interpolate=True)
    nlp = load_model_from_config(settings, auto_fill=True)
    elmo = next(pipe for _, pipe in nlp.components if isinstance(pipe, Elmo))
    names = [settings["training"][name] for name in ("train_corpus", "dev_corpus")]
    corpora = list(resolve_dot_names(settings, names))
    test = settings.get("paths", {}).get("test")
    if test is not None:
        corpora.append(dev_corpus(settings, test))
    docs: dict[tuple[int, ...], Doc] = {}
    for example in (example for corpus in corpora for example in corpus(nlp)):
        docs.setdefault(tuple(t.orth for t in example.predicted), example.predicted)
    different = list(docs.values())
    batches = [different[k : k + BATCH] for k in range(0, len(different), BATCH)]
    n_words = 0
    for batch in batches[part::n_parts]:
        # What a batch gives depends on the batch alone, to the last bit, and so not on
        # the number of processes.
        get_shim(elmo.model).bilm.clear_cache()
        elmo.predict(batch)
        n_words += sum(len(doc) for doc in batch)
    return n_words


def measure_speed(config: str, models: list[str]) -> list[float]:
    """Have trained pipelines take turns in reading the texts of the dev corpus.

    RETURNS (list[float]): Words a second of each, a median. Each reads a text as for
        the first time: it knows no vector of a word before.
    """
    pipelines = [spacy.load(path) for path in models]
    settings = Config().from_str(config, interpolate=True)
    examples = dev_corpus(settings)(pipelines[0])
    texts = list(take_words((eg.reference.text for eg in examples), MAX_WORDS))
    rates: list[list[float]] = [[] for _ in pipelines]
    for _ in range(ROUNDS + 1):
        for nlp, found in zip(pipelines, rates):
            for _, pipe in nlp.components:
                if isinstance(pipe, Elmo):
                    get_shim(pipe.model).bilm.clear_cache()
            start = time.perf_counter()
            n_words = sum(len(doc) for doc in nlp.pipe(texts))
            found.append(n_words / (time.perf_counter() - start))
    return [statistics.median(found[1:]) for found in rates]  # the first was warm-up


def take_words(texts: Iterator[str], n_words: int) -> Iterator[str]:
    """YIELDS (str): Texts, until there are that many words."""
    for text in texts:
        if n_words <= 0:
            return
        n_words -= len(text.split())
        yield text


JOBS: dict[str, Callable[..., Any]] = {
    "train": train_run,
    "layers": compute_layers,
    "speed": measure_speed,
}
