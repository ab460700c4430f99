"""project.yml: what its commands make, skip and make again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly
from pretraining import CONFIG
from weasel.cli.run import load_project_config

ROOT = Path(__file__).parent.parent
PROJECT = srsly.read_yaml(ROOT / "project.yml")
# What the project needs and the tests of it do not care for.
SMALL = {
    "config": "tiny.cfg",
    "minutes": 5,
    "variants": "baseline,mix-0.001",
    "seeds": "0",
    "shares": "1",
    "few_variants": "baseline,mix-0.001",
    "few_shares": "1",
    "n_process": 1,
    "max_steps": 2,
    "ner_steps": 2,
    "eval_frequency": 2,
}


@pytest.fixture
def project(tmp_path):
    """A copy in which everything is small."""
    for name in ("configs", "assets"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "project.yml", tmp_path)
    (tmp_path / "tiny.cfg").write_text(CONFIG)
    return tmp_path


def spacy(project, *args, env=None):
    result = subprocess.run(
        [sys.executable, "-m", "spacy", *map(str, args)],
        cwd=project,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return result.returncode, " ".join(result.stdout.split())


def run(project, workflow, **variables):
    """RETURNS: The names of the commands that were not skipped."""
    given = {**SMALL, **variables}
    flags = [part for k, v in given.items() for part in (f"--vars.{k}", v)]
    code, out = spacy(project, "project", "run", workflow, ".", *flags)
    assert code == 0, out
    names = [command["name"] for command in PROJECT["commands"]]
    return [n for n in names if f"= {n} =" in out and f"Skipping '{n}'" not in out]


def test_all_skips_what_is_done_and_redoes_what_changed(project):
    done = run(project, "all")
    assert set(done) == set(PROJECT["workflows"]["all"])
    results = project / "training" / "en"
    page = (results / "report.html").read_text("utf8")
    for part in ("Tags and dependencies", "Named entities", "play", "눈", "perplexity"):
        assert part in page
    assert "Named entities, with the bundled biLM" in page
    tasks = (("parsing", "dep_las"), ("bundled/parsing", "dep_las"), ("ner", "ents_f"))
    for task, metric in tasks:
        table = srsly.read_json(results / task / "compare.json")
        names = [variant["name"] for variant in table["variants"]]
        assert names == ["baseline", "mix-0.001"]
        assert all(metric in variant["scores"] for variant in table["variants"])

    assert run(project, "all") == ["list-text", "report"]

    senses = project / "assets" / "senses" / "en.jsonl"
    lines = senses.read_text("utf8").splitlines(keepends=True)
    senses.write_text("".join(lines[:-1]), "utf8")
    changed = {"perplexity", "find-neighbors", "map-senses", "map-bundled-senses"}
    assert set(run(project, "all")) == changed | {"list-text", "report"}


def test_another_text_is_pretrained_on_again(project):
    text = project / "my.txt"
    prose = (project / "assets" / "text" / "en.txt").read_text("utf8")
    text.write_text(prose, "utf8")
    told = {"raw_text": "my.txt", "lang": "xx"}
    assert "pretrain-bilm" in run(project, "pretrain", **told)
    first = srsly.read_json(project / "training/xx/bilm/model-best/config.json")
    assert first["training"]["lang"] == "xx" and first["lstm"]["n_layers"] == 2
    assert "pretrain-bilm" not in run(project, "pretrain", **told)
    text.write_text(prose + "\n\nOne more.\n", "utf8")
    assert "pretrain-bilm" in run(project, "pretrain", **told, lstm_dim=6, n_layers=1)
    third = srsly.read_json(project / "training/xx/bilm/model-best/config.json")
    assert third["lstm"]["dim"] == 6 and third["lstm"]["n_layers"] == 1
    projection_dim = first["lstm"]["projection_dim"]
    assert third["lstm"]["projection_dim"] == projection_dim


def test_korean_pipelines_and_packages(project):
    told = {"lang": "ko", "senses": "assets/senses/ko.jsonl"}
    told["treebank"] = told["ner"] = "assets/treebank/ko"
    run(project, "pretrain", **told, raw_text="assets/senses/ko.jsonl")
    assert "train-ner" in run(project, "train", **told)
    assert run(project, "package", **told)[-1:] == ["package-parsing"]
    assert list((project / "packages").rglob("*.tar.gz"))
    run(project, "finetune", **told, domain_text="assets/senses/ko.jsonl")
    assert (project / "training/ko/finetuned/model-best/config.json").exists()


def test_treebanks_come_by_git(project, tmp_path_factory):
    remote = tmp_path_factory.mktemp("remote")
    bank = remote / "UD_Test-Sample"
    bank.mkdir()
    shutil.copy(ROOT / "assets/treebank/en/dev.conllu", bank / "te-ud-train.conllu")
    git = ["git", "-C", str(bank), "-c", "user.name=a", "-c", "user.email=a@b"]
    for args in (["init", "-b", "master"], ["add", "."], ["commit", "-m", "a"]):
        subprocess.run([*git, *args], check=True, capture_output=True)
    env = {  # the treebanks' home is a folder here, and there is no network
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{remote.as_posix()}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/UniversalDependencies/",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }
    args = ["elmo", "assets", ".", "--vars.ud", "UD_Test-Sample"]
    code, out = spacy(project, *args, env=env)
    assert code == 1
    assert "An asset could not be fetched. Is there a network?" in out
    assert (project / "assets/UD_Test-Sample/te-ud-train.conllu").exists()


def test_commands_can_run_everywhere():
    names = [command["name"] for command in PROJECT["commands"]]
    assert len(set(names)) == len(names)
    for command in PROJECT["commands"]:
        assert command["help"]
        for line in command["script"]:
            assert line.startswith(("python -m ", "python -c "))
    loaded = load_project_config(ROOT)
    for command, made in zip(PROJECT["commands"], loaded["commands"]):
        assert len(command.get("deps", [])) == len(made.get("deps", []))
    for steps in PROJECT["workflows"].values():
        assert set(steps) <= set(names)
    promised = {"all", "pretrain", "finetune", "train", "compare", "probe", "package"}
    assert promised <= set(PROJECT["workflows"])
    assert {"lang", "gpu", "raw_text", "treebank", "ner", "config"} <= set(
        PROJECT["vars"]
    )
