"""Test saved pipelines whose parts do not fit together, and damaged ones."""

import json
import os
import random
import tracemalloc
import warnings

import pytest
import spacy
import srsly
from helpers.pipelines import assert_close
from helpers.tasks import (
    elmo_alone,
    make_examples,
    make_nlp,
    save_tiny,
    with_elmo,
)
from thinc.api import Adam

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig

TASKS = {"tagger": with_elmo("both"), "ner": elmo_alone()}
TEXT = "green birds sang loudly"


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("bilms") / "first")


@pytest.fixture
def other(tmp_path):
    return save_tiny(tmp_path / "second", seed=1)


def one_line(caught):
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*W(086|087|113)")
        yield


# Another biLM than the one of the training


def source_tasks(trained, bilm, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": bilm, **config})
    for name in TASKS:
        nlp.add_pipe(name, source=trained)
    return nlp


@pytest.mark.parametrize(
    "lstm, found",
    [
        (LSTMConfig(dim=12, projection_dim=5), "3 layers of width 10"),
        (LSTMConfig(dim=12, projection_dim=6, n_layers=1), "2 layers of width 12"),
    ],
)
@pytest.mark.parametrize("saved", [False, True])
def test_a_bilm_of_other_sizes_is_named(bilm, tmp_path, lstm, found, saved):
    trained, _ = make_nlp(bilm, TASKS)
    if saved:
        trained.to_disk(tmp_path / "trained")
        trained = spacy.load(tmp_path / "trained")
    folder = str(tmp_path / "small")
    BiLM(BiLMConfig(BytesConfig(char_dim=4, filters=[[1, 4]]), lstm)).save(folder)
    nlp = source_tasks(trained, folder)
    with pytest.raises(ValueError) as caught:
        nlp(TEXT)
    message = one_line(caught)
    assert message.startswith(f"tagger: found a biLM {folder} [")
    assert f"of {found} in 'elmo'; expected a biLM {bilm} [" in message
    assert "of 3 layers of width 12" in message
    with pytest.raises(ValueError, match="ner: found a biLM"):
        nlp.update(make_examples(nlp), exclude=["elmo", "tagger"])


def test_other_weights_of_the_same_sizes_give_one_warning(bilm, other, tmp_path):
    trained, _ = make_nlp(bilm, TASKS)
    trained.to_disk(tmp_path / "trained")
    nlp = source_tasks(spacy.load(tmp_path / "trained"), other)
    with pytest.warns(UserWarning) as caught:
        nlp(TEXT)
        nlp(TEXT)
    messages = [str(warning.message) for warning in caught]
    assert [message.split(":")[0] for message in messages] == ["tagger", "ner"]
    for message in messages:
        assert f"found the biLM {other} [" in message and "\n" not in message
        assert f"expected {bilm} [" in message


def test_the_same_weights_from_elsewhere_give_no_warning(bilm, no_warnings, tmp_path):
    trained, examples = make_nlp(bilm, TASKS)
    trained.update(examples, sgd=Adam(0.01))
    trained.to_disk(tmp_path / "trained")
    loaded = spacy.load(tmp_path / "trained")
    loaded(TEXT)
    source_tasks(loaded, bilm)(TEXT)
    source_tasks(trained, bilm, window=10, overlap=2)(TEXT)
    again = type(loaded).from_config(loaded.config).from_bytes(loaded.to_bytes())
    again(TEXT)


@pytest.mark.parametrize("averages", [False, True])
@pytest.mark.slow
def test_a_fine_tuned_bilm_gives_no_warning(bilm, no_warnings, tmp_path, averages):
    nlp, examples = make_nlp(bilm, TASKS, frozen=False)
    optimizer = Adam(0.01, use_averages=averages)
    for _ in range(3):
        nlp.update(examples, sgd=optimizer)
        with nlp.use_params(optimizer.averages or {}):
            nlp(TEXT)
            nlp.to_disk(tmp_path / "tuned")
        nlp(TEXT)
    loaded = spacy.load(tmp_path / "tuned")
    loaded(TEXT)
    # Train it once more.
    loaded.update(make_examples(loaded), sgd=loaded.resume_training())
    loaded(TEXT)
    loaded.to_disk(tmp_path / "again")
    loaded = spacy.load(tmp_path / "again")
    loaded(TEXT)
    moved = spacy.blank("en")
    for name in ("elmo", *TASKS):
        moved.add_pipe(name, source=loaded)
    moved(TEXT)


def test_a_tagger_left_behind_by_a_fine_tuned_bilm_is_named(bilm, tmp_path):
    nlp, examples = make_nlp(bilm, TASKS, frozen=False)
    nlp.to_disk(tmp_path / "start")
    nlp = spacy.load(tmp_path / "start")
    optimizer = Adam(0.1)
    for _ in range(4):
        nlp.update(make_examples(nlp), sgd=optimizer, exclude=["tagger"])
    nlp.to_disk(tmp_path / "tuned")
    with pytest.warns(UserWarning) as caught:
        spacy.load(tmp_path / "tuned")(TEXT)
    assert [str(w.message).split(":")[0] for w in caught] == ["tagger"]


def test_a_pipeline_without_its_elmo_says_what_to_do(bilm, tmp_path):
    nlp, _ = make_nlp(bilm, {"tagger": elmo_alone()})
    expected = nlp(TEXT).to_json()
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path / "without")
    with pytest.raises(ValueError) as caught:
        spacy.load(tmp_path / "without")(TEXT)
    message = one_line(caught)
    assert "nothing to listen to" in message and "nlp.replace_listeners" in message
    nlp, _ = make_nlp(bilm, {"tagger": elmo_alone()})
    nlp.replace_listeners("elmo", "tagger", ["model.tok2vec.elmo"])
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path / "replaced")
    assert spacy.load(tmp_path / "replaced")(TEXT).to_json() == expected


# A folder for the cache in a saved config


def test_a_saved_pipeline_does_not_choose_where_to_write(bilm, tmp_path):
    folder = tmp_path / "cache"
    config = {"cache_folder": str(folder), "cache_layers": "always"}
    nlp, _ = make_nlp(bilm, TASKS, **config)
    nlp(TEXT)
    assert list(folder.glob("*/*.layers"))
    nlp.to_disk(tmp_path / "saved")
    moved = tmp_path / "moved"
    folder.rename(moved)
    loaded = spacy.load(tmp_path / "saved")
    with pytest.warns(UserWarning, match="cache_folder .* is not used, because it"):
        loaded(TEXT)
    assert not folder.exists()
    # The user may name one: in an override, or later.
    override = {"components.elmo.cache_folder": str(tmp_path / "mine")}
    spacy.load(tmp_path / "saved", config=override)(TEXT)
    assert list((tmp_path / "mine").glob("*/*.layers"))
    loaded = spacy.load(tmp_path / "saved")
    loaded.get_pipe("elmo").storage.cache_folder = str(folder)
    loaded(TEXT)
    assert list(folder.glob("*/*.layers"))


# Damage


def damage(rng, data):
    """Return data with a flipped bit, a part missing, doubled, zeroed or replaced."""
    data, place = bytearray(data), rng.randrange(len(data))
    kind = rng.choice(("bit", "bit", "cut", "lost", "zeros", "noise", "twice", "empty"))
    size = rng.randrange(1, 200)
    if kind == "bit":
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        data = data[:place]
    elif kind == "lost":
        del data[place : place + size]
    elif kind == "zeros":
        data[place : place + size] = bytes(len(data[place : place + size]))
    elif kind == "noise":
        data[place : place + size] = rng.randbytes(size)
    elif kind == "twice":
        data[place:place] = data[place : place + size]
    else:
        data = bytearray()
    return bytes(data)


def make_elmo(bilm):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": bilm})
    return nlp


def try_damages(bilm, folder, n_trials, seed):
    """Load n_trials damaged copies of a saved `elmo`, from disk and from bytes, and
    check that each is refused in one line, or gives the same vectors.

    RETURNS (int): How many were refused.
    """
    rng = random.Random(seed)
    nlp = make_elmo(bilm)
    expected = nlp(TEXT).tensor
    elmo = nlp.get_pipe("elmo")
    elmo.to_disk(folder)
    saved, data = (folder / "model").read_bytes(), elmo.to_bytes(exclude=["vocab"])
    n_refused = 0
    for trial in range(n_trials):
        fresh = make_elmo(str(folder / "nowhere"))
        try:
            if trial % 2:
                name = "the bytes of 'elmo'"
                fresh.get_pipe("elmo").from_bytes(damage(rng, data), exclude=["vocab"])
            else:
                name = str(folder / "model")
                (folder / "model").write_bytes(damage(rng, saved))
                fresh.get_pipe("elmo").from_disk(folder, exclude=["vocab"])
        except ValueError as error:
            n_refused += 1
            assert str(error).startswith(name) and "\n" not in str(error)
        else:
            assert_close(fresh(TEXT).tensor, expected, 0)
    return n_refused


@pytest.mark.slow
def test_damaged_weights_are_refused(bilm, tmp_path):
    assert try_damages(bilm, tmp_path / "elmo", 60, seed=0) > 40


@pytest.mark.slow
def test_many_damages_are_refused(bilm, tmp_path):
    assert try_damages(bilm, tmp_path / "elmo", 600, seed=1) > 450


@pytest.fixture(scope="module")
def large_bilm(tmp_path_factory):
    """Return a biLM of 5 MB, which is large enough that its weights are not copied."""
    folder = str(tmp_path_factory.mktemp("large") / "bilm")
    config = BiLMConfig(
        BytesConfig(char_dim=4, filters=[[1, 64]]), LSTMConfig(512, projection_dim=64)
    )
    BiLM(config).save(folder)
    return folder


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_flipped_bit_of_a_weight_is_found(size, bilm, large_bilm, tmp_path):
    nlp = make_elmo({"small": bilm, "large": large_bilm}[size])
    nlp(TEXT)
    nlp.to_disk(tmp_path / "saved")
    path = tmp_path / "saved" / "elmo" / "model"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError) as caught:
        spacy.load(tmp_path / "saved")
    assert one_line(caught).startswith(f"{path}: ")
    assert "checksum" in str(caught.value)


def test_a_damaged_file_without_our_data_does_not_matter(bilm, tmp_path):
    nlp = make_elmo(bilm)
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "saved")
    (tmp_path / "saved" / "elmo" / "cfg").write_bytes(b"\0\0")
    assert_close(spacy.load(tmp_path / "saved")(TEXT).tensor, expected, 0)


@pytest.mark.slow
def test_pipelines_of_the_first_release_can_be_loaded(bilm):
    nlp = make_elmo(bilm)
    expected = nlp(TEXT).tensor
    message = srsly.msgpack_loads(nlp.get_pipe("elmo").model.to_bytes())
    parts = srsly.msgpack_loads(message["shims"][0][0])
    for name in ("checksum", "name"):
        del parts[name]
    message["shims"][0][0] = srsly.msgpack_dumps(parts)
    old = make_elmo("nowhere")
    old.get_pipe("elmo").model.from_bytes(srsly.msgpack_dumps(message))
    assert_close(old(TEXT).tensor, expected, 0)


@pytest.mark.parametrize("cut", [1, 1000, 4_000_000])
def test_a_cut_file_of_large_weights_is_refused(cut, large_bilm, tmp_path):
    nlp = make_elmo(large_bilm)
    nlp.initialize()
    message = srsly.msgpack_loads(nlp.get_pipe("elmo").model.to_bytes())
    message["shims"][0][0] = message["shims"][0][0][:-cut]
    with pytest.raises(ValueError, match="found damaged data"):
        nlp.get_pipe("elmo").model.from_bytes(srsly.msgpack_dumps(message))


def test_loading_takes_less_than_3_times_the_memory_of_the_file(large_bilm, tmp_path):
    nlp = make_elmo(large_bilm)
    expected = nlp(TEXT).tensor
    nlp.to_disk(tmp_path / "saved")
    other = make_elmo("nowhere")
    tracemalloc.start()
    try:
        other.get_pipe("elmo").from_disk(tmp_path / "saved" / "elmo", exclude=["vocab"])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * (tmp_path / "saved" / "elmo" / "model").stat().st_size
    assert_close(other(TEXT).tensor, expected, 0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_in_the_place_of_the_model_is_refused(bilm, tmp_path):
    nlp = make_elmo(bilm)
    nlp.to_disk(tmp_path / "saved")
    (tmp_path / "saved" / "elmo" / "model").unlink()
    os.mkfifo(tmp_path / "saved" / "elmo" / "model")
    with pytest.raises(ValueError, match="found a pipe; expected a file"):
        spacy.load(tmp_path / "saved")


def test_arrays_that_overlap_in_a_saved_pipeline_are_refused(large_bilm):
    nlp = make_elmo(large_bilm)
    nlp.initialize()
    message = srsly.msgpack_loads(nlp.get_pipe("elmo").model.to_bytes())
    parts = srsly.msgpack_loads(message["shims"][0][0])
    del parts["name"], parts["checksum"]  # as older releases saved it
    length = int.from_bytes(parts["weights"][:8], "little")
    header = json.loads(parts["weights"][8 : 8 + length])
    again = {"dtype": "F32", "shape": [1_000_000], "data_offsets": [1, 4_000_001]}
    header |= {f"copy {number}": again for number in range(100)}
    text = json.dumps(header).encode()
    parts["weights"] = (
        len(text).to_bytes(8, "little") + text + parts["weights"][8 + length :]
    )
    message["shims"][0][0] = srsly.msgpack_dumps(parts)
    changed = srsly.msgpack_dumps(message)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="found arrays that overlap"):
            nlp.get_pipe("elmo").model.from_bytes(changed)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(changed)
    finally:
        tracemalloc.stop()
