"""Damaged corpora, layer caches and checkpoints: each is noticed and made again, or
left out, or refused in one sentence. None is believed."""

import shutil
import warnings

import pytest
from helpers.corpora import build
from helpers.fuzzing import mutate, mutate_json
from helpers.layer_caches import found, make_cache
from helpers.pretraining import run_training, write_config, write_text
from safetensors.numpy import load_file

from spacy_elmo.bilm.errors import SourceError


def damage(path, rng):
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_bytes(mutate_json(data, rng))
    else:
        path.write_bytes(mutate(data, rng))


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def read_corpus(corpus):
    parts = [(part.tokens.tolist(), part.blocks.tolist()) for part in corpus[1:]]
    return corpus[0].words, corpus[0].counts.tolist(), parts


def test_any_corpus(fuzz, tmp_path):
    text = write_text(tmp_path / "text.txt", n_documents=6)

    def get_contents():
        corpus, _ = build(tmp_path / "corpus", text, dev_share=0.3)
        return read_corpus((corpus, corpus.train, corpus.dev))

    expected = get_contents()
    for rng in fuzz.trials(30):
        damage(rng.choice(files_below(tmp_path / "corpus")), rng)
        assert get_contents() == expected


def test_any_cache(fuzz, tmp_path):
    make_cache(folder=tmp_path / "whole", numbers=range(1, 5))
    for rng in fuzz.trials(30):
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        shutil.copytree(tmp_path / "whole", tmp_path / "cache")
        damage(rng.choice(files_below(tmp_path / "cache")), rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cache = make_cache(folder=tmp_path / "cache")
            # Layers that are found are checked: they must be the right ones.
            assert set(found(cache)) <= {1, 2, 3, 4}


@pytest.mark.slow
def test_any_checkpoint(fuzz, tmp_path):
    text = write_text(tmp_path / "text.txt")
    config = write_config(tmp_path / "config.cfg", text)
    whole, part, run = (tmp_path / name for name in ("whole", "part", "run"))
    run_training(config, whole)
    run_training(config, part, training__max_steps=10)

    def read_weights(output):
        files = ("weights.safetensors", "softmax.safetensors")
        arrays = [load_file(output / "model-last" / name) for name in files]
        return [{k: v.tobytes() for k, v in named.items()} for named in arrays]

    expected = read_weights(whole)
    for rng in fuzz.trials(6):
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(part, run)
        chosen = rng.choice(files_below(run / "checkpoints"))
        damage(chosen, rng)
        try:
            run_training(config, run, resume=True)
        except (ValueError, SourceError) as error:
            assert "\n" not in str(error)
        else:
            assert read_weights(run) == expected, chosen.name
