"""What `python -m spacy elmo compare` compares, and what it refuses."""

from pathlib import Path

import pytest
from helpers.comparing import CONFIGS, PAIR, command, overrides, save_data
from spacy.tokens import DocBin
from thinc.api import Config
from typer.testing import CliRunner

from spacy_elmo.cli import app
from spacy_elmo.compare.comparison import Comparison
from spacy_elmo.compare.data import choose
from spacy_elmo.compare.options import Options
from spacy_elmo.compare.plan import Pair


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return save_data(tmp_path_factory.mktemp("data"))


def test_shares_are_nested():
    for n_docs in (1, 7, 1000):
        last = list(range(n_docs))
        assert choose(n_docs, 1.0) == last
        for share in (0.5, 0.1, 0.01):
            chosen = choose(n_docs, share)
            assert chosen == choose(n_docs, share) == sorted(set(chosen))
            assert set(chosen) <= set(last)
            assert len(chosen) == max(1, round(share * n_docs))
            last = chosen


def test_variants(data):
    pair = Pair(*PAIR, overrides(data, **{"paths.vectors": str(data / "bilm")}))
    options = Options(seeds=[4])
    runs = Comparison(pair, options, Path("nowhere"), print).runs
    found = {run.variant.name: run.config.interpolate() for run in runs}
    settings = {
        name: tuple(config["elmo"][key] for key in ("where", "l2", "fixed"))
        for name, config in found.items()
        if "elmo" in config
    }
    assert settings == {
        "last": ("input", 0.001, [0.0, 0.0, 1.0]),
        "mean": ("input", 0.001, [1 / 3] * 3),
        "mix-1": ("input", 1.0, None),
        "mix-0.001": ("input", 0.001, None),
        "output": ("output", 0.001, None),
        "whole": ("both", 0.001, None),
        "both": ("both", 0.001, None),
    }
    assert list(found) == ["baseline", "vectors", *settings]
    for names in (["baseline"], ["vectors", "baseline"]):
        runs = Comparison(pair, Options(variants=names), Path("x"), print).runs
        assert {run.variant.name for run in runs} == {"baseline", "vectors"}
    for names, in_part in (
        (["baseline", "both"], {"baseline", "both"}),
        (["last", "both", "mix-0.001", "baseline"], {"baseline", "mix-0.001"}),
        (["last", "output"], {"output"}),
    ):
        options = Options(variants=names, shares=[1, 0.1])
        runs = Comparison(pair, options, Path("x"), print).runs
        assert {run.variant.name for run in runs if run.share < 1} == in_part
    for name, config in found.items():
        has_vectors = name == "vectors"
        assert (config["initialize"]["vectors"] is not None) == has_vectors
        if "elmo" not in config:
            embed = config["components"]["tok2vec"]["model"]["embed"]
            assert embed["include_static_vectors"] == has_vectors
        assert config["training"]["seed"] == 4
        assert config["training"]["max_steps"] == 7
        assert "mix-1" not in name or config["components"]["ner"]["model"]["tok2vec"][
            "mix"
        ]["l2"] == float(name[4:])


@pytest.mark.parametrize("task", ["ner", "parsing", "tagging", "textcat", "spancat"])
def test_whole_cnn_is_the_baselines(task, data):
    pair = Pair(
        *(CONFIGS / f"{task}_{kind}.cfg" for kind in ("baseline", "elmo")),
        {k: v for k, v in overrides(data).items() if not k.startswith("components.")},
    )
    runs = Comparison(pair, Options(seeds=[0]), Path("x"), print).runs
    found = {run.variant.name: cnns(run.config["components"]) for run in runs}
    (theirs,) = found["baseline"]
    for name in found.keys() & {"output", "whole"}:
        assert found[name] == [theirs] * len(pair.task.split(", "))
    assert found["both"] == found["mix-1"] == cnns(pair.elmo["components"])
    # The variant is for configs that leave something out beside ELMo.
    assert ("whole" in found) == any(cnn != theirs for cnn in found["both"])
    assert ("whole" in found) == (task in ("ner", "parsing"))


def cnns(section):
    """RETURNS (list[tuple[dict, dict]]): The embed and encode layers of a section."""
    if "embed" in section:
        return [(section["embed"], section["encode"])]
    inner = [value for value in section.values() if isinstance(value, dict)]
    return [found for value in inner for found in cnns(value)]


# Bad input


def complaint(*args):
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 1, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return " ".join(done.output.split())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--seeds", "a"], "--seeds is 'a'"),
        (["--seeds", "1,1"], "expected different numbers"),
        (["--shares", "2"], "a share is 2; expected more than 0"),
        (["--shares", "0"], "a share is 0; expected more than 0"),
        (["--variants", "best"], "found a variant 'best'; expected some of baseline"),
        (["--variants", "vectors"], "expected --paths.vectors"),
        (["--share-variants", "x"], "found a variant 'x'"),
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
    args = command(data, tmp_path)
    args = [arg for arg in args if not str(arg).startswith(options[0] + "=")]
    text = complaint(*args, *options)
    assert sentence in text
    assert text.count("✘") == 1


def test_bad_configs(data, tmp_path):
    args = command(data, tmp_path / "output")
    swapped = [args[0], args[2], args[1], *args[3:]]
    assert "found no where in a section [elmo]" in complaint(*swapped)
    args[2] = tmp_path / "other.cfg"
    assert "other.cfg: cannot be read as a config" in complaint(*args)
    config = Config().from_disk(PAIR[1], interpolate=False)
    config["training"]["patience"] = 7
    config.to_disk(tmp_path / "other.cfg")
    assert "training.patience differs between" in complaint(*args)
    (tmp_path / "other.cfg").write_text("[nlp]\nlang = 'en'\n")
    assert "other.cfg" in complaint(*args)


def test_bad_data(data, tmp_path):
    path = tmp_path / "train.spacy"
    args = command(data, tmp_path, **{"paths.train": str(path)})
    path.write_bytes(b"not docs")
    assert "train.spacy: cannot be read as docs" in complaint(*args)
    DocBin().to_disk(path)
    assert "train.spacy: found no docs" in complaint(*args)
