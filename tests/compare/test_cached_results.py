"""Test that `compare` uses its earlier results again if nothing has changed."""

import os
import shutil
import signal
import time

import pytest
import srsly
from helpers.comparing import compare, load_runs
from helpers.forks import fork, wait
from helpers.pipelines import make_docs, save_bilm
from spacy.tokens import DocBin
from thinc.api import Config

from spacy_elmo.compare import training_run
from spacy_elmo.compare.output_folder import OutputFolder
from spacy_elmo.compare.source_fingerprints import fingerprint_sources
from spacy_elmo.results import Speed


@pytest.mark.slow
def test_comparison_continues_after_a_failed_run(data, fake_training, tmp_path):
    fake_training.failing.add("last-1-3")
    with pytest.raises(ValueError, match="no luck"):
        compare(data, tmp_path)
    *done, _ = fake_training.take_trained()
    assert 0 < len(done) < 12 and load_runs(tmp_path).keys() == set(done)
    assert not (tmp_path / "compare.json").exists()
    fake_training.failing.clear()
    lines = []
    compare(data, tmp_path, lines=lines)
    rest = fake_training.take_trained()
    assert len(rest) == 12 - len(done) and not set(rest) & set(done)
    assert f"{len(done)} of 12 runs are already trained" in lines
    compare(data, tmp_path)
    assert fake_training.take_trained() == []


@pytest.mark.slow
def test_damaged_results_are_trained_again(data, fake_training, tmp_path):
    table = compare(data, tmp_path)
    fake_training.take_trained()
    names = ["both-1-3", "last-1-5", "baseline-1-3"]
    for name, text in zip(names, ['{"fingerprint":', "[]", '{"fingerprint": "x"}']):
        (tmp_path / "runs" / f"{name}.json").write_text(text)
    assert compare(data, tmp_path) == table
    assert sorted(fake_training.take_trained()) == sorted(names)


def test_a_changed_number_in_a_result_is_noticed(data, fake_training, tmp_path):
    wanted = {"variants": ["baseline"], "seeds": [3], "shares": [1]}
    table = compare(data, tmp_path, wanted)
    fake_training.take_trained()
    path = tmp_path / "runs" / "baseline-1-3.json"
    whole = srsly.read_json(path)
    name = next(iter(whole["scores"]))
    changed = {**whole["scores"], name: whole["scores"][name] / 2}
    for wrong in (
        {**whole, "scores": changed},
        {**whole, "seconds": 10**6},
        {k: v for k, v in whole.items() if k != "checksum"},
    ):
        srsly.write_json(path, wrong)
        lines = []
        assert compare(data, tmp_path, wanted, lines=lines) == table
        assert fake_training.take_trained() == ["baseline-1-3"]
        (line,) = [line for line in lines if "checksum" in line]
        assert line.startswith(f"{path}: ")


def test_a_changed_speed_is_not_used(tmp_path):
    lines = []
    folder = OutputFolder(tmp_path, lines.append)
    speeds = {"a": Speed(fingerprint="x", words_per_second=1234.5)}
    folder.write_speeds(speeds)
    assert folder.load_speeds()["a"].words_per_second == 1234.5
    assert not lines
    path = tmp_path / "speed.json"
    path.write_text(path.read_text().replace("1234.5", "9234.5"))
    assert folder.load_speeds() == {}
    assert len(lines) == 1 and lines[0].startswith(f"{path}: ")


def test_only_new_seeds_and_variants_are_trained(data, fake_training, tmp_path):
    compare(data, tmp_path, {"variants": ["baseline"], "seeds": [3]})
    assert sorted(fake_training.take_trained()) == ["baseline-0.5-3", "baseline-1-3"]
    compare(data, tmp_path)
    assert len(fake_training.take_trained()) == 10


@pytest.mark.slow
def test_runs_are_repeated_after_a_change_of_config_or_data(
    data, fake_training, tmp_path
):
    copied, output = tmp_path / "data", tmp_path / "output"
    shutil.copytree(data, copied)
    compare(data, output)
    fake_training.take_trained()

    def rerun(**given):
        compare(copied, output, **given)
        return len(fake_training.take_trained())

    assert rerun() == 0  # the data are the same, only in another folder
    assert rerun(**{"components.elmo.cache_folder": str(tmp_path)}) == 0
    assert rerun(**{"training.dropout": 0.2}) == 12
    assert rerun(**{"training.dropout": 0.2}) == 0
    assert rerun() == 12
    assert rerun(**{"elmo.layer_norm": False}) == 8  # only the runs with ELMo
    assert rerun() == 8
    save_bilm(copied / "bilm", seed=1)
    assert rerun() == 8
    for name in ("train", "dev"):
        DocBin(docs=make_docs()[1:]).to_disk(copied / f"{name}.spacy")
        assert rerun() == 12
        assert rerun() == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_comparison_continues_after_it_was_killed(data, in_process, tmp_path):
    wanted = {"variants": ["baseline"], "seeds": range(3), "shares": [1]}
    child = fork(lambda: compare(data, tmp_path, wanted))
    end = time.monotonic() + 120
    while not load_runs(tmp_path) and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    assert wait(child) == -signal.SIGKILL
    done = {path: path.read_bytes() for path in tmp_path.glob("runs/*.json")}
    assert 0 < len(done) < 3
    compare(data, tmp_path, wanted)
    assert len(load_runs(tmp_path)) == 3
    for path, content in done.items():
        assert path.read_bytes() == content


# Installed packages


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that makes Python believe that a package is installed.

    It writes only the metadata, and replaces those of an earlier call for the package.
    """
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(name, version, contents=""):
        for old in site.glob(f"{name}-*"):
            shutil.rmtree(old)
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        record = f"{name}/vectors.bin,sha256={contents},1\n{info.name}/METADATA,,\n"
        (info / "RECORD").write_text(record)

    return install


@pytest.mark.slow
def test_another_version_of_installed_vectors_is_noticed(
    data, fake_training, tmp_path, install
):
    def rerun():
        options = {"variants": ["baseline"], "seeds": [3], "shares": [1.0]}
        given = {"paths.vectors": "some_vectors"}
        compare(data, tmp_path / "output", options, **given)
        return fake_training.take_trained()

    install("some_vectors", "1.0.0")
    assert sorted(rerun()) == ["baseline-1-3", "vectors-1-3"]
    assert rerun() == []
    install("some_vectors", "1.0.1")
    assert rerun() == ["vectors-1-3"]
    install("some_vectors", "1.0.1", "other")  # built again with the same version
    assert rerun() == ["vectors-1-3"]
    assert rerun() == []


def test_another_version_of_a_sourced_pipeline_is_noticed(install):
    config = Config({"components": {"tagger": {"source": "some_pipeline"}}})
    found = []
    for version in ("1.0.0", "1.0.0", "2.0.0"):
        install("some_pipeline", version)
        found.append(fingerprint_sources(config)["some_pipeline"])
    assert found[0] == found[1] != found[2]


def test_only_settings_that_name_sources_are_fingerprinted(tmp_path, monkeypatch):
    """Check that a folder with the name of some value in the config is ignored."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en").mkdir()
    config = Config({"nlp": {"lang": "en"}, "paths": {"train": "", "dev": "no"}})
    assert fingerprint_sources(config) == {}


@pytest.mark.parametrize(
    ("package", "repeated"),
    [("spacy", 12), ("thinc", 12), ("torch", 8), ("spacy-elmo", 8)],
)
@pytest.mark.slow
def test_trainings_are_repeated_after_an_upgrade(
    package, repeated, data, fake_training, tmp_path, install, monkeypatch
):
    output = tmp_path / "output"
    compare(data, output)
    fake_training.take_trained()
    if package == "spacy-elmo":
        monkeypatch.setattr(training_run, "__version__", "99.1")
    else:
        install(package, "99.1")
    lines = []
    compare(data, output, lines=lines)
    trained = fake_training.take_trained()
    assert len(trained) == repeated
    # The baselines depend neither on torch nor on spacy-elmo.
    assert any("baseline" in name for name in trained) == (repeated == 12)
    (line,) = [line for line in lines if "other versions" in line]
    assert f"{package} " in line and "-> 99.1" in line
    compare(data, output, lines=lines)
    assert fake_training.take_trained() == []
