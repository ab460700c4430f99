"""The jobs of worker processes: train a pipeline, compute layers, measure speed."""

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

SPEED_ROUNDS = 5
SPEED_WORDS = 10_000
BATCH_SIZE = 128  # docs


def train_run(
    config: str,
    folder: str,
    keep: str | None,
    restore: dict[str, dict[str, Any]],
    gpu_id: int,
) -> dict[str, Any]:
    """Train a pipeline, and evaluate the best pipeline that the training has saved.

    config (str): The text of the config.
    folder (str): A folder for temporary files, removed at the end.
    keep (str | None): Where to move the best pipeline; None to remove it.
    restore (dict[str, dict[str, Any]]): Settings to write into the config of the
        pipeline that is kept, by component.
    gpu_id (int): The GPU to train on, or -1 for the CPU.
    RETURNS (dict[str, Any]): The keys scores, test_scores, mixes and seconds of a
        `RunResult`.
    """
    start = time.perf_counter()
    work = Path(folder)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    settings = Config().from_str(config, interpolate=False)
    train(init_nlp(settings, use_gpu=gpu_id), work, use_gpu=gpu_id, stdout=sys.stdout)
    interpolated = settings.interpolate()
    nlp = spacy.load(work / "model-best")
    for name, component in nlp.components:
        if isinstance(component, Elmo):  # a loaded pipeline ignores the saved folder
            folder_of_cache = interpolated["components"][name].get("cache_folder")
            component.storage.cache_folder = folder_of_cache
    result: dict[str, Any] = {
        "scores": evaluate(nlp, make_dev_corpus(interpolated)),
        "test_scores": None,
        "mixes": [
            {"task": task, "s": weights, "gamma": gamma}
            for task, weights, gamma in find_mixes(nlp)
        ],
    }
    test = interpolated.get("paths", {}).get("test")
    if test is not None:
        result["test_scores"] = evaluate(nlp, make_dev_corpus(interpolated, test))
    if keep is not None:
        change_settings(work / "model-best" / "config.cfg", restore)
        shutil.rmtree(keep, ignore_errors=True)
        Path(keep).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(work / "model-best", keep)
    shutil.rmtree(work)
    result["seconds"] = round(time.perf_counter() - start, 1)
    return result


def evaluate(nlp: Language, corpus: Callable[[Language], Any]) -> dict[str, float]:
    """Evaluate a pipeline, and return all scores that are single numbers, except the
    speed."""
    scores = nlp.evaluate(list(corpus(nlp)))
    return {
        name: float(value)
        for name, value in scores.items()
        if isinstance(value, (int, float)) and name != "speed"
    }


def make_dev_corpus(config: Config, path: str | None = None) -> Callable[..., Any]:
    """Make the corpus on which trainings are evaluated.

    config (Config): A config without variables.
    path (str | None): Data to use instead of the development data.
    """
    section: Any = config
    for part in config["training"]["dev_corpus"].split("."):
        section = section[part]
    section = section if path is None else {**section, "path": path}
    return registry.resolve({"corpus": section})["corpus"]


def change_settings(path: Path, settings: dict[str, dict[str, Any]]) -> None:
    """Change settings of components in a config on disk."""
    config = Config().from_disk(path, interpolate=False)
    for name, values in settings.items():
        config["components"][name].update(values)
    config.to_disk(path)


def compute_layers(config: str, part: int, n_parts: int) -> int:
    """Compute the layers of a part of the docs, and put the layers into the cache.

    config (str): The text of a config whose `elmo` component has a cache_folder.
    part (int): The index of the part.
    n_parts (int): Into how many parts the docs of all corpora are divided.
    RETURNS (int): The number of words in the part.
    """
    settings = Config().from_str(config, interpolate=True)
    nlp = load_model_from_config(settings, auto_fill=True)
    elmo = next(pipe for _, pipe in nlp.components if isinstance(pipe, Elmo))
    names = [settings["training"][name] for name in ("train_corpus", "dev_corpus")]
    corpora = list(resolve_dot_names(settings, names))
    test = settings.get("paths", {}).get("test")
    if test is not None:
        corpora.append(make_dev_corpus(settings, test))
    docs: dict[tuple[int, ...], Doc] = {}
    for example in (example for corpus in corpora for example in corpus(nlp)):
        docs.setdefault(tuple(t.orth for t in example.predicted), example.predicted)
    distinct = list(docs.values())
    batches = [
        distinct[start : start + BATCH_SIZE]
        for start in range(0, len(distinct), BATCH_SIZE)
    ]
    n_words = 0
    for batch in batches[part::n_parts]:
        # The biLM's cache of words may change the last bit of a vector. Clear it, so
        # that the layers do not depend on the number of processes.
        get_shim(elmo.model).bilm.clear_cache()
        elmo.predict(batch)
        n_words += sum(len(doc) for doc in batch)
    return n_words


def measure_speed(config: str, models: list[str]) -> list[float]:
    """Measure how fast trained pipelines predict. In each round, every pipeline
    processes the same texts of the development data. The biLM's cache of words is
    cleared before, as if all texts were new.

    config (str): The text of a config that names the development data.
    models (list[str]): The paths of the pipelines.
    RETURNS (list[float]): Words per second of each pipeline: the median of all rounds
        but the first.
    """
    pipelines = [spacy.load(path) for path in models]
    settings = Config().from_str(config, interpolate=True)
    examples = make_dev_corpus(settings)(pipelines[0])
    texts = list(take_words((eg.reference.text for eg in examples), SPEED_WORDS))
    rates: list[list[float]] = [[] for _ in pipelines]
    for _ in range(SPEED_ROUNDS + 1):
        for nlp, found in zip(pipelines, rates):
            for _, pipe in nlp.components:
                if isinstance(pipe, Elmo):
                    get_shim(pipe.model).bilm.clear_cache()
            start = time.perf_counter()
            n_words = sum(len(doc) for doc in nlp.pipe(texts))
            found.append(n_words / (time.perf_counter() - start))
    # The first round was a warm-up.
    return [statistics.median(found[1:]) for found in rates]


def take_words(texts: Iterator[str], n_words: int) -> Iterator[str]:
    """Yield texts until they have this many words in total."""
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
