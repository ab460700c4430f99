"""Test that the layers of all texts are computed once and used by all runs."""

import numpy as np
import pytest
import spacy
from helpers.comparing import PAIR, compare, make_overrides
from helpers.pipelines import get_bilm, make_docs
from helpers.tasks import count_encoded_docs
from spacy.util import dot_to_object, load_config, load_model_from_config

from spacy_elmo import load_bilm
from spacy_elmo.compare import jobs
from spacy_elmo.compare.jobs import JOBS


@pytest.mark.slow
def test_layers_are_computed_once(data, in_process, tmp_path, monkeypatch):
    encoded = count_encoded_docs(monkeypatch)
    before = []

    def train_run(**arguments):
        before.append(sum(encoded))
        return original(**arguments)

    original = JOBS["train"]
    monkeypatch.setitem(JOBS, "train", train_run)
    monkeypatch.setitem(JOBS, "speed", lambda **arguments: [1.0])
    wanted = {"variants": ["mix-1"], "seeds": [0, 1], "shares": [1.0], "keep": "all"}
    compare(data, tmp_path, wanted)
    assert before == [5, 5] and sum(encoded) == 5  # each different doc once
    assert len(list(tmp_path.glob("models/*"))) == 2


@pytest.mark.slow
def test_layers_are_the_same_for_any_number_of_processes(data, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "BATCH_SIZE", 2)
    encoded = count_encoded_docs(monkeypatch)
    layers = []
    for n_parts in (1, 2, 3):
        given = {
            "components.elmo.cache_layers": "always",
            "components.elmo.cache_folder": str(tmp_path / str(n_parts)),
        }
        config = load_config(PAIR[1], {})
        for key, value in make_overrides(data, **given).items():
            if key != "components.tok2vec.model.embed.rows":
                section, _, name = key.rpartition(".")
                dot_to_object(config, section)[name] = value
        text = config.to_str()
        parts = [
            jobs.compute_layers(text, k, n_parts) for k in reversed(range(n_parts))
        ]
        assert sum(parts) == sum(len(doc) for doc in make_docs())
        assert sum(encoded) == 5
        encoded.clear()
        elmo = load_model_from_config(config.interpolate()).get_pipe("elmo")
        outputs = elmo.predict(make_docs())
        layers.append(np.concatenate([output.layers for output in outputs]))
        assert encoded == []  # all layers came from the cache
    for other in layers[1:]:
        np.testing.assert_array_equal(layers[0], other)


@pytest.mark.slow
def test_unfrozen_bilm_is_trained_and_not_cached(
    data, in_process, tmp_path, monkeypatch
):
    monkeypatch.delitem(JOBS, "layers")
    wanted = {"variants": ["mix-1"], "seeds": [0], "shares": [1.0]}
    compare(data, tmp_path, wanted, **{"components.elmo.frozen": False})
    nlp = spacy.load(tmp_path / "models" / "mix-1-1-0")
    before = load_bilm(data / "bilm").state_dict()
    after = get_bilm(nlp).state_dict()
    assert any(not before[name].equal(after[name]) for name in after)
