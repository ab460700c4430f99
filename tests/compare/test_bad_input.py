"""Test that `spacy elmo compare` refuses bad input with a message of one sentence."""

import pytest
from helpers.comparing import PAIR, make_command
from spacy.tokens import DocBin
from thinc.api import Config
from typer.testing import CliRunner

from spacy_elmo.cli import app


def error_of(*args):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 1, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--seeds", "a"], "found --seeds 'a'; expected numbers"),
        (["--seeds", "1,1"], "expected different numbers"),
        (["--shares", "2"], "a share is 2; expected more than 0"),
        (["--shares", "0"], "a share is 0; expected more than 0"),
        (["--variants", "best"], "found a variant 'best'; expected some of baseline"),
        (["--variants", "vectors"], "expected --paths.vectors"),
        (["--share-variants", "x"], "found a variant 'x'"),
        (["--share-variants", "vectors"], "'vectors' among --share-variants; expected"),
        (["--n-process", "0"], "n_process is 0; expected 1 or more"),
        (["--keep", "some"], "keep is 'some'; expected one of"),
        (["--gpu-id", "7"], "torch sees no GPU"),
        (["--elmo.where", "both"], "elmo.where is what the variants set"),
        (["--system.seed", "1"], "system.seed is what --seeds sets"),
        (["--training.steps", "1"], "--training.steps: found no such setting"),
        (["--nowhere.at.all", "1"], "--nowhere.at.all: found no such setting"),
        (["--paths.train", "nowhere.spacy"], "nowhere.spacy: no such file"),
        (["--paths.dev", "null"], "corpora.dev has no path; expected --paths.dev FILE"),
        (["--elmo.bilm", "nowhere"], "nowhere"),
        (["--nlp.batch_size", "many"], "batch_size"),
    ],
)
def test_bad_options(options, sentence, data, tmp_path):
    if any(option.startswith("--gpu") for option in options):
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
    args = make_command(data, tmp_path)
    args = [arg for arg in args if not str(arg).startswith(options[0] + "=")]
    text = error_of(*args, *options)
    assert sentence in text
    assert text.count("✘") == 1


def test_bad_configs(data, tmp_path):
    args = make_command(data, tmp_path / "output")
    swapped = [args[0], args[2], args[1], *args[3:]]
    assert "found no where in a section [elmo]" in error_of(*swapped)
    args[2] = tmp_path / "other.cfg"
    assert "other.cfg: cannot be read as a config" in error_of(*args)
    config = Config().from_disk(PAIR[1], interpolate=False)
    config["training"]["patience"] = 7
    config.to_disk(tmp_path / "other.cfg")
    assert "training.patience differs between" in error_of(*args)
    config = Config().from_disk(PAIR[1], interpolate=False)
    config["nlp"]["tokenizer"] = {"@tokenizers": "spacy-elmo.MecabTokenizer.v1"}
    config.to_disk(tmp_path / "other.cfg")
    assert "nlp.tokenizer differs between" in error_of(*args)
    (tmp_path / "other.cfg").write_text("[nlp]\nlang = 'en'\n")
    assert "other.cfg" in error_of(*args)


@pytest.mark.parametrize(
    "section, key, value, sentence",
    [
        ("training", "train_corpus", None, "found training.train_corpus = None"),
        (
            "training",
            "train_corpus",
            5,
            "found training.train_corpus = 5; expected the",
        ),
        ("corpora", "train", 5, "found corpora.train = 5; expected a section"),
        ("corpora.train", "path", 5, "found corpora.train.path = 5; expected the name"),
        ("nlp", "lang", 5, "Can't import language 5"),
        ("nlp.tokenizer", "@tokenizers", 5, "'int' object"),
    ],
)
def test_values_of_wrong_types(section, key, value, sentence, data, tmp_path):
    args = make_command(data, tmp_path / "output")
    args = [arg for arg in args if not str(arg).startswith("--nlp.lang=")]
    for number, path in enumerate(PAIR, 1):
        config = Config().from_disk(path, interpolate=False)
        found = config
        for name in section.split("."):
            found = found[name]
        found[key] = value
        args[number] = tmp_path / f"{number}.cfg"
        config.to_disk(args[number])
    text = error_of(*args)
    assert sentence in text and ".cfg: " in text and "not expected here" not in text


@pytest.mark.slow
def test_bad_data(data, tmp_path):
    path = tmp_path / "train.spacy"
    args = make_command(data, tmp_path, **{"paths.train": str(path)})
    path.write_bytes(b"not docs")
    assert "train.spacy: cannot be read as a .spacy file" in error_of(*args)
    DocBin().to_disk(path)
    assert "train.spacy: found no docs" in error_of(*args)
