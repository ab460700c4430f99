"""For each mistake that is easily made, one sentence says what was found and what to
do."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from helpers.command import refused
from helpers.pipelines import paths, save_bilm, write_config
from helpers.pretraining import write_text
from helpers.tasks import elmo_alone, make_examples, make_nlp

from spacy_elmo import load_bilm
from spacy_elmo.cli.spacy_errors import explain
from spacy_elmo.text.tokenizers import Tokenization

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "configs" / "pretrain_demo.cfg"
TEXT = "green birds sang"


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return save_bilm(tmp_path_factory.mktemp("bilms") / "mine")


@pytest.fixture
def saved(tmp_path, bilm):
    """Return the folder of a pipeline of `elmo` and a tagger that listens to it."""
    nlp, _ = make_nlp(str(bilm), {"tagger": elmo_alone()})
    nlp.to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def refusal(function, *args, **settings):
    with pytest.raises(ValueError) as caught:
        function(*args, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# The biLM


def test_output_folder_of_a_pretraining(tmp_path, bilm):
    shutil.copytree(bilm, tmp_path / "run" / "model-last")
    found = refusal(load_bilm, tmp_path / "run")
    assert f"without model-best; expected a trained biLM: use {tmp_path}" in found
    (tmp_path / "begun" / "checkpoints").mkdir(parents=True)
    found = refusal(load_bilm, tmp_path / "begun")
    assert "wait for its first evaluation" in found and "--resume" in found
    shutil.copytree(bilm, tmp_path / "run" / "model-best")
    assert load_bilm(tmp_path / "run").config == load_bilm(bilm).config


def test_pipeline_as_bilm(tmp_path, saved):
    for folder in (saved, saved / "elmo"):
        found = refusal(load_bilm, folder)
        assert f"{saved}: found a spaCy pipeline" in found
        assert "its component 'elmo' has one: use" in found
    shutil.copytree(saved, tmp_path / "run" / "model-last")
    found = refusal(load_bilm, tmp_path / "run")  # the output folder of `spacy train`
    assert f"{tmp_path / 'run' / 'model-last'}: found a spaCy pipeline" in found
    spacy.blank("en").to_disk(tmp_path / "blank")
    found = refusal(load_bilm, tmp_path / "blank")
    assert "without 'elmo'; expected a biLM, such as en_elmo_sm" in found


def test_incomplete_pipeline(saved):
    weights = saved / "elmo" / "model"
    data = weights.read_bytes()
    weights.write_bytes(data[: len(data) // 2])
    found = refusal(spacy.load, saved)
    assert f"{weights}: found damaged data" in found
    assert "save, copy or install it again" in found
    weights.unlink()
    found = refusal(spacy.load, saved)
    assert f"{weights}: no such file; expected the biLM of 'elmo'" in found
    assert "save, copy or install it again" in found


def test_device_that_is_not_there():
    for device in ("cuda:99", "mps:7", "gpu"):
        found = refusal(load_bilm, "en_elmo_sm", device=device)
        assert f"device is '{device}', which torch cannot use here" in found
        assert "a machine with an NVIDIA GPU and a torch built for it" in found
        assert len(found) < 400


# Listeners


def test_removed_elmo(tmp_path, saved, bilm):
    nlp = spacy.load(saved)
    nlp.remove_pipe("elmo")
    nlp.to_disk(tmp_path / "without")
    found = refusal(spacy.load(tmp_path / "without"), TEXT)
    assert f"expected a component 'elmo' with the biLM {bilm}" in found
    assert "nlp.add_pipe('elmo', name='elmo', first=True)" in found
    repaired = spacy.load(tmp_path / "without")
    repaired.add_pipe("elmo", name="elmo", first=True, source=spacy.load(saved))
    assert repaired(TEXT)[0].tag_ == spacy.load(saved)(TEXT)[0].tag_


def test_bilm_of_another_width(saved):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    nlp.add_pipe("tagger", source=spacy.load(saved))
    found = refusal(nlp, TEXT)
    assert "of 3 layers of width 384" in found and "of 3 layers of width 12" in found
    assert found.endswith("use that biLM, or train the component again")


def test_listener_of_spacy_with_another_width(bilm):
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "upstream": "elmo"}

    def initialize(width):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"bilm": str(bilm)})
        model = {
            "@architectures": "spacy.Tagger.v2",
            "tok2vec": {**listener, "width": width},
        }
        nlp.add_pipe("tagger", config={"model": model})
        nlp.initialize(lambda: make_examples(nlp))

    initialize(12)
    found = refusal(initialize, 96)
    assert "tagger: found a Tok2VecListener of width 96; expected width 12" in found
    assert "spacy-elmo.ElmoTok2Vec.v1" in found


# Commands of ours


def test_files_that_are_no_text(tmp_path):
    path = tmp_path / "picture.txt"
    path.write_bytes(bytes(range(256)) * 100)
    found = refused("embed", "en_elmo_sm", path, tmp_path / "a.hdf5")
    assert "so this is not text; expected lines of text, such as a .txt" in found


def test_option_without_a_value(tmp_path):
    raw = write_text(tmp_path / "a.txt")
    options = ("pretrain", DEMO, "--output", tmp_path / "out")
    found = refused(*options, "--training.seed", "--paths.raw_text", raw)
    assert "found --training.seed without a value; expected int after it" in found
    found = refused(*options, "--paths.raw_text")
    assert "without a value; expected str or list[str] after it" in found


def test_config_of_spacy_for_pretrain(tmp_path):
    config = ROOT / "configs" / "tagging_elmo.cfg"
    found = refused("pretrain", config, "--output", tmp_path / "out")
    assert "which is for `spacy train`" in found
    assert "as `spacy elmo init-config pretrain` writes it" in found


def test_config_is_written_to_a_file_only(tmp_path):
    (tmp_path / "taken").write_text("a file")
    found = refused("init-config", "tagging", tmp_path / "taken" / "a.cfg")
    assert "taken is not a folder; expected another name" in found
    found = refused("init-config", "tagging", tmp_path, "--force")
    assert "found a folder; expected a file" in found


def test_korean_without_mecab(monkeypatch):
    def fail(nlp):
        raise ImportError("The Korean tokenizer requires mecab-ko")

    def has_no_mecab():
        return fail

    default = spacy.registry.get("tokenizers", "spacy.ko.KoreanTokenizer")
    spacy.registry.tokenizers.register("spacy.ko.KoreanTokenizer", func=has_no_mecab)
    try:
        said = []
        chosen = Tokenization("ko").or_rules(said.append)
    finally:
        spacy.registry.tokenizers.register("spacy.ko.KoreanTokenizer", func=default)
    assert chosen.tokenizer == "spacy.Tokenizer.v1"
    assert "pip install 'spacy-elmo[ko]'" in said[0]
    assert "spacy-elmo.MecabTokenizer.v1" in said[0]


# Commands of spaCy


def train(*args):
    command = [sys.executable, "-m", "spacy", "train", *map(str, args)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    printed = " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in printed
    return printed


@pytest.mark.slow
def test_wrong_bilm_in_a_training(tmp_path):
    components = {"elmo": {"factory": "elmo", "bilm": "${paths.bilm}"}}
    config = write_config(tmp_path / "config", components)
    found = train(config, *paths(config, "en_elmo_md"))
    assert "en_elmo_md: no such file or folder; expected a biLM, or the name" in found


@pytest.mark.slow
def test_config_for_pretraining_in_a_training(tmp_path):
    found = train(DEMO, "--output", tmp_path)
    assert "found a config for `spacy elmo pretrain`; expected a training" in found


@pytest.mark.slow
def test_file_as_output_of_a_training(tmp_path):
    components = {"elmo": {"factory": "elmo", "bilm": "${paths.bilm}"}}
    config = write_config(tmp_path / "config", components)
    (tmp_path / "taken").write_text("a file")
    options = paths(config, "en_elmo_sm")
    output = f"--output={tmp_path / 'taken'}"
    found = train(config, output, *options, "--training.max_steps", 1)
    assert "taken: found a file; expected a folder to write to" in found
    assert "give --output another name, or remove that file" in found


def test_what_is_explained_of_errors_of_spacy(tmp_path, monkeypatch):
    def explained(function, *args):
        try:
            function()
        except Exception as error:
            return explain(error, list(map(str, args)))

    def fail():
        raise ValueError("[E1015] Can't initialize model from config")

    def fail_without_mecab():
        raise ImportError('The Korean tokenizer ("spacy.ko.KoreanTokenizer") requires')

    assert explained(lambda: load_bilm("nowhere")).startswith("nowhere: no such file")
    monkeypatch.setitem(sys.modules, "mecab", None)
    tokenizer = "spacy-elmo.MecabTokenizer.v1"
    assert "pip install 'spacy-elmo[ko]'" in explained(
        lambda: spacy.registry.get("tokenizers", tokenizer)()(spacy.blank("en"))
    )
    assert "spacy elmo pretrain" in explained(fail, "train", DEMO)
    (tmp_path / "taken").write_text("a file")

    def fail_to_save():
        (tmp_path / "taken" / "model-last").mkdir()

    found = explained(fail_to_save, "train", "a.cfg", "-o", tmp_path / "taken")
    assert found.startswith(f"{tmp_path / 'taken'}: found a file; expected a folder")
    assert explained(fail_to_save, "train", "a.cfg", "-o", tmp_path) is None
    # A missing corpus is another problem, even if the output is a file too.
    found = explained((tmp_path / "no.spacy").read_bytes, "-o", tmp_path / "taken")
    assert found is None
    config = ROOT / "configs" / "tagging_elmo.cfg"
    for args in ((), (config,), (tmp_path / "no.cfg",)):
        assert explained(fail, "train", *args) is None
    found = explained(fail_without_mecab, "train", config)
    assert "spacy-elmo.MecabTokenizer.v1" in found and "spacy-elmo[ko]" in found


def test_a_name_that_is_too_long():
    assert "File name too long" in refused("info", "x" * 5000)
