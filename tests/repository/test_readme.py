"""Run every code block of the README."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import spacy
import srsly
from helpers.pages import KOREAN, README, ROOT, is_installation, read_blocks
from helpers.pretraining import CONFIG
from helpers.tasks import make_examples, mixes_of
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_elmo import load_bilm
from spacy_elmo.bilm.formats.sources import save_bilm
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain

COMMANDS = [b for b in read_blocks(README, "bash") if not is_installation(b)]
# By the beginning of a command line: options that make it short (if an option is given
# twice, the last one counts), and a file that it must write.
QUICK_OPTIONS = {
    "python -m spacy project run pretrain": "--vars.minutes 0.01",
    "python -m spacy project run train": "--vars.max_steps 2 --vars.ner_steps 2"
    " --vars.eval_frequency 2",
    "python -m spacy elmo pretrain": "--training.max_steps 2",
    "python -m spacy train": "--training.max_steps 2 --training.eval_frequency 2",
    "torchrun": "--training.max_steps 2",
}
WRITTEN = {
    "python -m spacy project run pretrain": "training/ko/bilm/model-best",
    "python -m spacy project run train": "training/ko/recogniser/model-best",
    "python -m spacy elmo pretrain": "training/my_bilm/model-best",
    "python -m spacy train": "training/parser/model-best",
    "torchrun": "training/two/model-best",
    "python -m spacy elmo prepare": "corpus/en/treebank/train.spacy",
    "python -m spacy elmo probe": "results/probe.json",
    "python -m spacy elmo neighbors": "results/neighbors.json",
    "python -m spacy elmo senses": "results/senses.json",
    "python -m spacy elmo report": "results/report.html",
}
# The README shows only the sections about ELMo; a pipeline needs these too.
REST_OF_CONFIG = """
[paths]
bilm = "training/en/bilm/model-best"

[nlp]
lang = "en"
pipeline = ["elmo", "tagger"]

[components]

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

"""


def each(blocks):
    return pytest.mark.parametrize("block", blocks, ids=lambda b: f"line-{b.line}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder like a clone in use: with texts, a biLM, published weights, and a
    pipeline with vectors, at the paths that the README names."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("configs", "assets"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "project.yml", folder)
    text = folder / "assets" / "text" / "en.txt"
    korean = srsly.read_jsonl(folder / "assets" / "senses" / "ko.jsonl")
    lines = [text.read_text("utf8"), *(record["text"] for record in korean)]
    (folder / "my_text.txt").write_text("\n".join(lines), "utf8")

    (folder / "tiny.cfg").write_text(CONFIG, "utf8")
    config = load_config(folder / "tiny.cfg", {"paths.raw_text": str(text)})
    pretrain(config, folder / "training" / "en" / "bilm")
    bilm = load_bilm(folder / "training" / "en" / "bilm" / "model-best")
    (folder / "path" / "to" / "pipeline" / "with").mkdir(parents=True)
    save_bilm(bilm, folder / "path" / "to" / "elmo", "hdf5")

    nlp = spacy.blank("en")
    for word in ("a", "stick", "stone"):
        nlp.vocab.set_vector(word, np.full(8, len(word), dtype="f"))
    nlp.to_disk(folder / "path" / "to" / "pipeline" / "with" / "vectors")
    return folder


@pytest.mark.slow
@each(read_blocks(README, "python"))
def test_python(block, folder, monkeypatch):
    """Run a block, and check the shapes that its comments promise."""
    monkeypatch.chdir(folder)
    names = {}
    exec(compile(block.code, "README.md", "exec"), names)
    lines = block.code.split("\n")
    for statement in ast.parse(block.code).body:
        line = lines[statement.end_lineno - 1]
        promised = re.search(r"# (\(.*?\))", line)
        if isinstance(statement, ast.Expr) and promised:
            value = eval(ast.unparse(statement), names)
            found = value if isinstance(value, tuple) else value.shape
            assert found == eval(promised[1], shape_names(names)), line


def shape_names(names):
    bilm = names.get("bilm") or names["nlp"].get_pipe("elmo").model.shims[0].bilm
    return {
        "n_tokens": len(names["doc"]) if "doc" in names else len(["A", "sentence"]),
        "n_layers": bilm.config.lstm.n_layers,
        "width": bilm.config.width,
    }


@pytest.mark.slow
@each(COMMANDS)
def test_commands(block, folder):
    for line in block.code.splitlines():
        assert not re.search(r"[|&;<>$]", line)  # works without a shell
        added = [
            short for begin, short in QUICK_OPTIONS.items() if line.startswith(begin)
        ]
        program, *args = shlex.split(" ".join([line, *added]))
        start = {"python": [], "torchrun": ["-m", "torch.distributed.run"]}[program]
        done = subprocess.run(
            [sys.executable, *start, *args],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf8"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf8",
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}"
        for begin, path in WRITTEN.items():
            assert not line.startswith(begin) or (folder / path).exists(), line


@pytest.mark.parametrize("begin", sorted({*QUICK_OPTIONS, *WRITTEN}))
def test_every_table_entry_belongs_to_a_command_of_the_readme(begin):
    lines = [line for block in COMMANDS for line in block.code.splitlines()]
    assert any(line.startswith(begin) for line in lines)


@pytest.mark.slow
@each(read_blocks(README, "ini"))
def test_config(block, folder, monkeypatch):
    monkeypatch.chdir(folder)
    config = Config().from_str(REST_OF_CONFIG + block.code)
    nlp = load_model_from_config(config, auto_fill=True)
    nlp.initialize(lambda: make_examples(nlp))
    assert all(token.tag_ for token in nlp("He threw a stick and a stone."))
    assert len(mixes_of(nlp, "tagger")) == 1


@pytest.mark.parametrize("path", [README, KOREAN], ids=lambda path: path.name)
def test_every_block_has_a_known_language(path):
    blocks = read_blocks(path)
    assert {block.language for block in blocks} == {"bash", "python", "ini"}
    text = path.read_text("utf8")
    assert 2 * len(blocks) == sum("```" in line for line in text.split("\n"))


def test_korean_code_is_the_same():
    ours, theirs = (
        [(block.language, re.sub(r" *#.*", "", block.code)) for block in blocks]
        for blocks in map(read_blocks, (README, KOREAN))
    )
    assert ours == theirs
