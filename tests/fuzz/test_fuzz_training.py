"""Damaged corpora, layer caches and checkpoints: each is noticed and made again, or
left out. None is believed."""

import shutil
import warnings

import numpy as np
from helpers.corpora import build
from helpers.fuzzing import mutate, mutate_json
from helpers.layer_caches import found, make_cache
from helpers.pretraining import save_checkpoint, write_text

from spacy_elmo.pipeline.layer_cache import INDEX
from spacy_elmo.pretrain.checkpoints import Checkpoints


def damage(path, rng):
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_bytes(mutate_json(data, rng))
    else:
        path.write_bytes(mutate(data, rng))


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def damage_entry(path, rng):
    """Replace one number in the index of a layer cache."""
    entries = np.fromfile(path, dtype=INDEX)
    name = rng.choice(["offset", "n_tokens"])
    entries[name][rng.randrange(len(entries))] = rng.choice(
        [-1, 0, 3, 10**6, 10**12, 2**62, -(2**63)]
    )
    entries.tofile(path)


def test_any_corpus(fuzz, tmp_path):
    text = write_text(tmp_path / "text.txt", n_documents=6)

    def get_contents():
        corpus, _ = build(tmp_path / "corpus", text, dev_share=0.3)
        parts = [
            (part.tokens.tolist(), part.blocks.tolist())
            for part in (corpus.train, corpus.dev)
        ]
        return corpus.words, corpus.counts.tolist(), parts, corpus.meta

    expected = get_contents()
    for rng in fuzz.trials(30):
        damage(rng.choice(files_below(tmp_path / "corpus")), rng)
        assert get_contents() == expected


def test_any_cache(fuzz, tmp_path):
    make_cache(folder=tmp_path / "whole", numbers=range(1, 5))
    for rng in fuzz.trials(30):
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        shutil.copytree(tmp_path / "whole", tmp_path / "cache")
        chosen = rng.choice(files_below(tmp_path / "cache"))
        change = damage_entry if chosen.suffix == ".index" else damage
        rng.choice([change, damage])(chosen, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cache = make_cache(folder=tmp_path / "cache")
            # Layers that are found are checked: they must be the right ones.
            assert set(found(cache)) <= {1, 2, 3, 4}


def test_any_checkpoint(fuzz, tmp_path):
    def load(folder):
        tensors, facts = Checkpoints(folder).load(lambda line: None)
        numbers = {name: tensor.tolist() for name, tensor in tensors.items()}
        return numbers, facts["progress"], facts["vocab"]

    expected = []
    for step in (1, 2):
        save_checkpoint(tmp_path / "whole", step)
        expected.append(load(tmp_path / "whole"))
    for rng in fuzz.trials(60):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(tmp_path / "whole", tmp_path / "run")
        damage(rng.choice(files_below(tmp_path / "run" / "step-2")), rng)
        assert load(tmp_path / "run") in expected
