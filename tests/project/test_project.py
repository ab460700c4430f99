"""Test what the commands of project.yml write, and when they are skipped."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from pydoc_data import topics

import numpy as np
import pytest
import srsly
from helpers.analysis import save_vectors
from helpers.command import call_spacy, refused, run_project_command, text
from helpers.comparing import FakeTraining, compare_in_process
from helpers.models import write_files
from helpers.pipelines import save_bilm
from helpers.pretraining import CONFIG, load_log
from helpers.reference import random_arrays, random_options
from spacy import load
from spacy.training import Example
from weasel.cli.run import load_project_config

import spacy_elmo.report
from spacy_elmo import load_bilm
from spacy_elmo.compare.jobs import JOBS
from spacy_elmo.text.doc_files import load_docs

ROOT = Path(__file__).parents[2]
PROJECT = srsly.read_yaml(ROOT / "project.yml")
# Variables that make the project small; the tests do not depend on their values.
SMALL = {
    "config": "tiny.cfg",
    "minutes": 5,
    "variants": "baseline,mix-0.001",
    "seeds": "0",
    "shares": "1",
    "pretrained_variants": "baseline,mix-0.001",
    "n_process": 1,
    "max_steps": 2,
    "ner_steps": 2,
    "eval_frequency": 2,
}
# The commands that take --gpu-id.
ON_DEVICES = {"pretrain", "evaluate", "compare", "probe", "neighbors", "senses"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A copy of the project with a tiny pretraining config and little data. To save
    time, its commands run in this process, the speed of pipelines is not measured, and
    the report cannot draw its charts."""
    for name in ("configs", "assets", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "project.yml", tmp_path)
    (tmp_path / "tiny.cfg").write_text(CONFIG)
    for path in tmp_path.glob("assets/treebank/*/*.conllu"):
        sentences = path.read_text("utf8").split("\n\n")
        path.write_text("\n\n".join(sentences[:60]).strip() + "\n\n", "utf8")
    few = dict(sorted(topics.topics.items())[:20])
    monkeypatch.setattr(topics, "topics", few)  # of them, the demo text is made
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("weasel.cli.run.run_command", run_project_command)
    compare_in_process(monkeypatch)
    monkeypatch.setattr(spacy_elmo.report, "load_vega", lambda: "1")
    return tmp_path


def run(project, workflow, **variables):
    """Run a workflow, and return the names of the commands that were not skipped."""
    given = {**SMALL, **variables}
    flags = [part for k, v in given.items() for part in (f"--vars.{k}", v)]
    done = call_spacy("project", "run", workflow, ".", *flags)
    assert done.exit_code == 0, (done.output, done.exc_info)
    out = text(done)
    names = [command["name"] for command in PROJECT["commands"]]
    return [n for n in names if f"= {n} =" in out and f"Skipping '{n}'" not in out]


@pytest.mark.slow
def test_all_skips_what_is_done_and_redoes_what_changed(project):
    save_vectors(project / "vectors", {"the": [1.0, 2.0], "play": [2.0, 1.0]}, "en")
    done = run(project, "all", vectors="vectors")
    assert set(done) == set(PROJECT["workflows"]["all"])
    results = project / "training" / "en"
    page = (results / "report.html").read_text("utf8")
    trained = "biLM trained for 5 minutes on the sample text"
    for part in ("Tags and dependencies", "Named entities"):
        places = [page.find(f">{part}<"), page.find(f">{part}: {trained}<")]
        assert -1 < places[0] < places[1]  # the bundled biLM comes first
    for part in ("play", "눈", "perplexity"):
        assert part in page
    both = ["baseline", "mix-0.001"]
    for task, metric, expected in (
        ("parsing", "dep_las", ["baseline", "vectors", "mix-0.001"]),
        ("ner", "ents_f", ["baseline", "vectors", "mix-0.001"]),
        ("pretrained/parsing", "dep_las", both),
        ("pretrained/ner", "ents_f", both),
    ):
        table = srsly.read_json(results / task / "compare.json")
        assert [variant["name"] for variant in table["variants"]] == expected
        assert all(metric in variant["scores"] for variant in table["variants"])

    always = {"list-text", "list-sources", "report"}
    assert set(run(project, "all", vectors="vectors")) == always

    save_vectors(project / "vectors", {"the": [1.0, 2.0], "play": [2.0, 3.0]}, "en")
    senses = project / "assets" / "senses" / "en.jsonl"
    lines = senses.read_text("utf8").splitlines(keepends=True)
    senses.write_text("".join(lines[:-1]), "utf8")
    changed = {"perplexity", "find-neighbors", "map-senses"}
    changed |= {"compare-parsing", "compare-ner"}
    assert set(run(project, "all", vectors="vectors")) == changed | always


@pytest.mark.slow
def test_commands_run_again_for_another_or_changed_bilm(project):
    always = {"list-sources", "report"}
    looks = {"probe-layers", "find-neighbors", "map-senses"}
    assert set(run(project, "probe", bilm="en_elmo_sm")) == looks | always | {"prepare"}
    for seed in (0, 1):
        save_bilm(project / "mine", seed)
        assert set(run(project, "probe", bilm="mine")) == looks | always
    assert set(run(project, "probe", bilm="mine")) == always
    done = call_spacy("project", "run", "probe", ".", "--vars.bilm", "nowhere")
    assert done.exit_code == 1
    assert "nowhere: no such file or folder; expected" in text(done)
    run(project, "clean")
    assert not list(project.glob("training/en")) + list(project.glob("corpus/en"))


@pytest.mark.slow
def test_pretraining_runs_again_for_a_changed_text(project):
    path = project / "my.txt"
    prose = (project / "assets" / "text" / "en.txt").read_text("utf8")
    path.write_text(prose, "utf8")
    given = {"raw_text": "my.txt", "lang": "xx"}
    assert "pretrain-bilm" in run(project, "pretrain", **given)
    first = srsly.read_json(project / "training/xx/bilm/model-best/config.json")
    assert first["training"]["lang"] == "xx" and first["lstm"]["n_layers"] == 2
    assert "pretrain-bilm" not in run(project, "pretrain", **given)
    path.write_text(prose + "\n\nOne more.\n", "utf8")
    assert "pretrain-bilm" in run(project, "pretrain", **given, lstm_dim=6, n_layers=1)
    third = srsly.read_json(project / "training/xx/bilm/model-best/config.json")
    assert third["lstm"]["dim"] == 6 and third["lstm"]["n_layers"] == 1
    projection_dim = first["lstm"]["projection_dim"]
    assert third["lstm"]["projection_dim"] == projection_dim


@pytest.mark.slow
def test_an_interrupted_pretraining_is_resumed(project):
    # If resuming ignored lstm_dim, the biLM would not fit the checkpoint.
    given = {"raw_text": "assets/text/en.txt", "lang": "xx", "lstm_dim": 6}
    for command in ("list-text", "pretrain-bilm"):
        assert run(project, command, **given) == [command]
    output = project / "training" / "xx" / "bilm"
    before = load_log(output / "log.jsonl")
    config = project / "tiny.cfg"  # make it look stopped after 12 of 16 steps
    config.write_text(CONFIG.replace("max_steps = 12", "max_steps = 16"))
    resumed = ["resume-pretraining"]
    assert run(project, "resume-pretraining", **given) == resumed
    log = load_log(output / "log.jsonl")
    assert log[: len(before)] == before  # even seconds: no step was repeated
    assert [e["step"] for e in log if e["type"] == "evaluation"] == [4, 8, 12, 16]
    assert load_bilm(output / "model-last").config.training["steps"] == 16
    # This command is never skipped, because its files do not show whether training is
    # complete.
    assert run(project, "resume-pretraining", **given) == resumed


@pytest.mark.slow
def test_a_published_bilm_is_converted(project):
    (project / "published").mkdir()
    for seed in (0, 1):  # the second one replaces the first
        rng = np.random.default_rng(seed)
        options = random_options(rng)
        write_files(project / "published", options, random_arrays(options, rng))
        if seed == 0:  # as users do it, with a process for each command
            run_spacy = [sys.executable, "-m", "spacy", "project", "run"]
            args = ["convert-bilm", ".", "--vars.source", "published"]
            subprocess.run([*run_spacy, *args], check=True)
        else:
            done = run(project, "convert-bilm", source="published")
            assert done == ["convert-bilm"]
        found, expected = (
            load_bilm(project / name).embed([["눈", "snow"]])[0]
            for name in ("training/converted", "published")
        )
        np.testing.assert_array_equal(found, expected)
    assert (project / "training/converted/weights.safetensors").exists()


@pytest.mark.slow
def test_comparison_with_less_data(project, monkeypatch):
    """Compare with shares of the data. The scores are invented."""
    monkeypatch.setitem(JOBS, "train", FakeTraining())
    monkeypatch.setitem(JOBS, "layers", lambda **arguments: 0)
    treebank = Path("assets", "treebank")
    shutil.copytree(ROOT / treebank, project / treebank, dirs_exist_ok=True)
    save_bilm(project / "mine")
    shares = "1,0.1,0.01"
    done = run(project, "compare", bilm="mine", shares=shares)
    assert set(done) == set(PROJECT["workflows"]["compare"])
    names = SMALL["variants"].split(",")
    for task in ("parsing", "ner"):
        folder = project / "training" / "en" / task
        table = srsly.read_json(folder / "compare.json")
        assert table["shares"] == [float(share) for share in shares.split(",")]
        found = [(row["share"], row["name"]) for row in table["variants"]]
        assert found == [(share, name) for share in table["shares"] for name in names]
        for row in table["variants"]:
            assert set(row["scores"]) == set(table["metrics"])
        sizes = [size["words"] for size in table["data"]]
        assert sizes == sorted(sizes, reverse=True) and sizes[-1] < sizes[0] / 20
        page = (folder / "compare.md").read_text("utf8")
        _, less = page.split("## Scores by amount of training data")
        rows = [line.split("|")[1:3] for line in less.split("##")[0].splitlines()[4:]]
        cells = [[cell.strip() for cell in row] for row in rows if row]
        expected = [
            [f"{size['share']:.4g}", f"{size['words']:,}"]
            for size in reversed(table["data"])
            for _ in names
        ]
        assert cells == expected
    report = (project / "training" / "en" / "report.html").read_text("utf8")
    for part in ("Tags and dependencies", "Named entities"):
        assert f">{part}<" in report


@pytest.mark.slow
def test_a_fresh_clone_trains_evaluates_and_packages(project):
    assert set(run(project, "evaluate")) == set(PROJECT["workflows"]["evaluate"])
    tested = project / "corpus" / "en" / "held_out"
    for name, folder, metric in (
        ("parser", "treebank", "dep_las"),
        ("recogniser", "ner", "ents_f"),
    ):
        output = project / "training" / "en" / name
        scores = srsly.read_json(output / "metrics.json")
        nlp = load(output / "model-best")
        gold = load_docs(tested / folder / "test.spacy", nlp.vocab)
        again = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in gold])
        assert scores[metric] == pytest.approx(again[metric])
        assert scores["speed"] > 0
        assert repr(nlp("Hello")._.elmo).endswith("biLM en_elmo_sm>")
    report = (project / "training" / "en" / "report.html").read_text("utf8")
    assert f"{100 * scores['ents_f']:.1f}\N{NO-BREAK SPACE}%" in report
    assert run(project, "package")[-1:] == ["package-parsing"]
    assert run(project, "train") == ["list-sources"]  # the rest is done
    run(project, "clean")
    assert not (project / "training" / "en").exists()


@pytest.mark.slow
def test_korean_pipelines_and_packages(project):
    given = {"lang": "ko", "senses": "assets/senses/ko.jsonl"}
    given["treebank"] = given["ner"] = "assets/treebank/ko"
    run(project, "pretrain", **given, raw_text="assets/senses/ko.jsonl")
    given["bilm"] = "training/ko/bilm/model-best"
    given["source"] = given["bilm"]
    assert "train-ner" in run(project, "train", **given)
    assert run(project, "package", **given)[-1:] == ["package-parsing"]
    assert list((project / "packages").rglob("*.tar.gz"))
    given["domain_text"] = "texts/*.txt"
    prose = (project / "assets/text/en.txt").read_text("utf8")
    for name in "ab":
        (project / "texts").mkdir(exist_ok=True)
        (project / "texts" / f"{name}.txt").write_text(prose, "utf8")
        done = run(project, "finetune", **given)
        assert done == ["list-finetuning", "finetune-bilm"]
    assert (project / "training/ko/finetuned/model-best/config.json").exists()
    assert run(project, "finetune", **given) == ["list-finetuning"]


@pytest.mark.slow
def test_treebanks_are_downloaded_by_git(project, tmp_path_factory, monkeypatch):
    remote = tmp_path_factory.mktemp("remote")
    bank = remote / "UD_Test-Sample"
    bank.mkdir()
    shutil.copy(ROOT / "assets/treebank/en/dev.conllu", bank / "te-ud-train.conllu")
    git = ["git", "-C", str(bank), "-c", "user.name=a", "-c", "user.email=a@b"]
    for args in (["init", "-b", "master"], ["add", "."], ["commit", "-m", "a"]):
        subprocess.run([*git, *args], check=True, capture_output=True)
    env = {  # git reads from a folder instead of GitHub, without a network
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{remote.as_posix()}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/UniversalDependencies/",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    out = refused("assets", ".", "--vars.ud", "UD_Test-Sample")
    assert "An asset could not be downloaded. Is there a network" in out
    assert (project / "assets/UD_Test-Sample/te-ud-train.conllu").exists()


def test_commands_can_run_everywhere():
    names = [command["name"] for command in PROJECT["commands"]]
    assert len(set(names)) == len(names)
    for command in PROJECT["commands"]:
        assert command["help"]
    loaded = load_project_config(ROOT)
    for command in loaded["commands"]:
        for line in command["script"]:
            assert line.startswith("python -m ")
            # Weasel splits with posix=False on Windows, and with posix=True elsewhere.
            parts = shlex.split(line, posix=False)
            assert parts == shlex.split(line, posix=True) == line.split()
            command_of_ours = line.split()[3:5]
            if command_of_ours[:1] == ["elmo"] and command_of_ours[1] in ON_DEVICES:
                assert "--gpu-id -1" in line
    outputs = [path for each in loaded["commands"] for path in each.get("outputs", [])]
    assert len(set(outputs)) == len(outputs)
    for command, made in zip(PROJECT["commands"], loaded["commands"]):
        assert len(command.get("deps", [])) == len(made.get("deps", []))
    for steps in PROJECT["workflows"].values():
        assert set(steps) <= set(names)
    promised = {"all", "pretrain", "finetune", "train", "evaluate", "compare"}
    assert promised | {"probe", "package"} <= set(PROJECT["workflows"])
    assert {"lang", "gpu", "raw_text", "treebank", "ner", "config"} <= set(
        PROJECT["vars"]
    )
