"""Run every code block of the README and of the pages in docs/."""

import ast
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import spacy
import srsly
from helpers.command import call_spacy, run_project_command
from helpers.comparing import compare_in_process
from helpers.pages import (
    ENGLISH,
    ROOT,
    find_korean,
    is_for_contributors,
    is_installation,
    needs_several_machines,
    page_id,
    read_blocks,
)
from helpers.pretraining import CONFIG
from helpers.tasks import make_examples, mixes_of
from spacy.util import load_model_from_config
from thinc.api import Config

from spacy_elmo import load_bilm
from spacy_elmo.bilm.formats.sources import save_bilm
from spacy_elmo.pretrain.pretrain_config import load_config
from spacy_elmo.pretrain.pretraining import pretrain

COMMANDS = [
    block
    for page in ENGLISH
    for block in read_blocks(page, "bash")
    if not is_installation(block)
    and not is_for_contributors(block)
    and not needs_several_machines(block)
]
# Options that make a command finish quickly, by the first words of the command. They
# are added at the end, because the last one counts if an option is given twice.
QUICK_OPTIONS = {
    "python -m spacy project run pretrain": "--vars.minutes 0.01 --vars.lstm_dim 32"
    " --vars.projection_dim 16",
    "python -m spacy project run train": "--vars.max_steps 2 --vars.ner_steps 2"
    " --vars.eval_frequency 2",
    "python -m spacy elmo pretrain": "--training.max_steps 2 --model.lstm.dim 32"
    " --model.lstm.projection_dim 16",
    "python -m spacy elmo compare": "--training.max_steps 2"
    " --training.eval_frequency 2",
    "python -m spacy train": "--training.max_steps 2 --training.eval_frequency 2",
    "torchrun": "--training.max_steps 2 --model.lstm.dim 32"
    " --model.lstm.projection_dim 16",
    "python -m spacy elmo explore": "--port 0",
}
# The file or folder that a command must write. OUTPUT is the value of its --output.
WRITTEN = {
    "python -m spacy project run pretrain": "training/ko/bilm/model-best",
    "python -m spacy project run train": "training/ko/recogniser/model-best",
    "python -m spacy elmo pretrain": "OUTPUT/model-best",
    "python -m spacy train": "OUTPUT/model-best",
    "torchrun": "OUTPUT/model-best",
    "python -m spacy elmo compare": "OUTPUT/compare.json",
    "python -m spacy elmo evaluate": "OUTPUT",
    "python -m spacy elmo probe": "OUTPUT",
    "python -m spacy elmo neighbors": "OUTPUT",
    "python -m spacy elmo senses": "OUTPUT",
    "python -m spacy elmo init-config ner": "training/ner.cfg",
    "python -m spacy elmo init-config tagging": "training/tagging.cfg",
    "python -m spacy elmo init-config parsing training/fast.cfg": "training/fast.cfg",
    "python -m spacy elmo init-config parsing training/lstm.cfg": "training/lstm.cfg",
    "python -m spacy elmo prepare": "corpus/en/treebank/train.spacy",
    "python -m spacy elmo report": "results/report.html",
    "python -m spacy elmo embed en_elmo_sm assets/text/en.txt": "results/vectors.hdf5",
    "python -m spacy elmo embed en_elmo_sm my_text.txt": "results/parts/_manifest.json",
    "python -m spacy elmo annotate": "results/words/_manifest.json",
}
# Texts that a command must print if it writes no file.
PRINTED = {
    "python -m spacy evaluate": "TAG",
    "python -m spacy elmo info": "gamma",
    "python -m spacy elmo explore": "http://127.0.0.1:",
}
# Commands that run until Ctrl-C is pressed, after they printed that.
SERVERS = ("python -m spacy elmo explore",)
# The pages show only the sections about ELMo. A pipeline also needs these.
REST_OF_CONFIG = """
[nlp]
lang = "en"
pipeline = ["elmo", "tagger", "ner"]

[components]

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.ner]
factory = "ner"

[components.ner.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "ner"

"""


def name_block(block):
    return f"{page_id(block.page)}-line-{block.line}"


def each_block(language):
    blocks = [block for page in ENGLISH for block in read_blocks(page, language)]
    return pytest.mark.parametrize("block", blocks, ids=name_block)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder that looks like a clone of the repository in use. It has texts, a
    biLM, weights in the published format and a pipeline with word vectors, at the paths
    that the pages use."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("configs", "assets"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "project.yml", folder)
    text = folder / "assets" / "text" / "en.txt"
    korean = srsly.read_jsonl(folder / "assets" / "senses" / "ko.jsonl")
    lines = [text.read_text("utf8"), *(record["text"] for record in korean)]
    (folder / "my_text.txt").write_text("\n".join(lines), "utf8")

    (folder / "tiny.cfg").write_text(CONFIG, "utf8")
    overrides = {"paths.raw_text": str(text), "corpus.lang": "en"}
    config = load_config(folder / "tiny.cfg", overrides)
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
@each_block("python")
def test_python(block, folder, monkeypatch, capsys):
    """Run a block. Check that it prints the output that the page shows below it, and
    that arrays have the shapes in its comments."""
    monkeypatch.chdir(folder)
    if "from pyspark" in block.code:
        run_spark(block)
        return
    names = {}
    exec(compile(block.code, block.page.name, "exec"), names)
    assert capsys.readouterr().out == find_output(block)
    lines = block.code.split("\n")
    for statement in ast.parse(block.code).body:
        line = lines[statement.end_lineno - 1]
        promised = re.search(r"# (\(.*?\))", line)
        if isinstance(statement, ast.Expr) and promised:
            value = eval(ast.unparse(statement), names)
            found = value if isinstance(value, tuple) else value.shape
            assert found == eval(promised[1], shape_names(names)), line


def run_spark(block):
    """Run a block in a process of its own, because Spark's server ends with it."""
    if find_spec("pyspark") is None or shutil.which("java") is None:
        pytest.skip("needs pyspark and Java")
    run = [sys.executable, "-c", block.code]
    done = subprocess.run(run, capture_output=True, encoding="utf8")
    assert done.stdout == find_output(block), done.stderr


def find_output(block):
    """Return the output that a page shows in the next block, or ""."""
    blocks = read_blocks(block.page)
    following = blocks[blocks.index(block) + 1 :]
    return following[0].code if following and following[0].language == "text" else ""


def shape_names(names):
    bilm = names.get("bilm") or names["nlp"].get_pipe("elmo").model.shims[0].bilm
    return {
        "n_tokens": len(names["doc"]) if "doc" in names else len(["A", "sentence"]),
        "n_layers": bilm.config.lstm.n_layers,
        "width": bilm.config.width,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", list(dict.fromkeys(block.page for block in COMMANDS)), ids=page_id
)
def test_commands(page, folder, monkeypatch):
    """Run all commands of a page in order. They must not need those of other pages."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("weasel.cli.run.run_command", run_project_command)
    compare_in_process(monkeypatch)
    (folder / "results").mkdir(exist_ok=True)
    shutil.rmtree(folder / "corpus", ignore_errors=True)
    for block in COMMANDS:
        for line in block.code.splitlines() if block.page == page else ():
            run_command(line, folder)


def run_command(line, folder):
    if "--cluster" in line and find_spec("ray") is None:
        return
    assert not re.search(r"[|&;<>$]", line)  # because no shell is used
    program, *args = shlex.split(" ".join([line, *look_up(QUICK_OPTIONS, line)]))
    path = args[args.index("--output") + 1] if "--output" in args else ""
    expected = [
        folder / name.replace("OUTPUT", path) for name in look_up(WRITTEN, line)
    ]
    if program == "torchrun" or line.startswith(SERVERS):
        code, output = run_program(program, args, until="Ctrl-C")
    else:  # in this process, because it has imported spaCy
        assert [program, *args[:2]] == ["python", "-m", "spacy"]
        done = call_spacy(*args[2:])
        code, output = done.exit_code, f"{done.output}\n{done.exception}"
    assert code == 0, f"{line}\n{output}"
    printed = look_up(PRINTED, line)
    assert expected or printed, f"add what this command does: {line}"
    assert all(path.exists() for path in expected), line
    assert all(text in output for text in printed), f"{line}\n{output}"


def run_program(program, args, until):
    """Run a program. Press Ctrl-C when it has printed what it does until then."""
    start = {"python": [], "torchrun": ["-m", "torch.distributed.run"]}[program]
    process = subprocess.Popen(
        [sys.executable, *start, *args],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf8",
        # A shell that runs the tests in the background lets them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    output = ""
    while until not in output and (line := process.stdout.readline()):
        output += line
    if until in output:
        process.send_signal(signal.SIGINT)
    output += process.communicate()[0]
    return process.returncode, output


def look_up(table, line):
    return [value for begin, value in table.items() if line.startswith(f"{begin} ")]


@pytest.mark.parametrize("begin", sorted({*QUICK_OPTIONS, *WRITTEN, *PRINTED}))
def test_every_table_entry_belongs_to_a_command_of_a_page(begin):
    lines = [line for block in COMMANDS for line in block.code.splitlines()]
    assert any(line.startswith(f"{begin} ") for line in lines)


@pytest.mark.slow
@each_block("ini")
def test_config(block, folder, monkeypatch):
    """Build a pipeline from a block together with the blocks before it on its page."""
    monkeypatch.chdir(folder)
    blocks = [b for b in read_blocks(block.page, "ini") if b.line <= block.line]
    config = Config().from_str(REST_OF_CONFIG + "\n".join(b.code for b in blocks))
    nlp = load_model_from_config(config, auto_fill=True)
    nlp.initialize(lambda: make_examples(nlp))
    assert all(token.tag_ for token in nlp("He threw a stick and a stone."))
    for name in ("tagger", "ner"):
        assert len(mixes_of(nlp, name)) == 2  # at input and output


def test_blocks_in_all_languages_are_found():
    blocks = [block for page in ENGLISH for block in read_blocks(page)]
    assert {block.language for block in blocks} == {"bash", "python", "ini", "text"}


@pytest.mark.parametrize("page", ENGLISH, ids=page_id)
def test_every_block_is_run(page):
    """Check that the tests above find every block: its language must be known, output
    must be below Python, and all fences must be parsed."""
    blocks = read_blocks(page)
    assert {b.language for b in blocks} <= {"bash", "python", "ini", "text"}
    for before, block in zip([None, *blocks], blocks):
        assert block.language != "text" or before.language == "python"
    for path in (page, find_korean(page)):
        lines = path.read_text("utf8").split("\n")
        assert 2 * len(blocks) == sum("```" in line for line in lines)


@pytest.mark.parametrize("page", ENGLISH, ids=page_id)
def test_korean_code_is_the_same(page):
    ours, theirs = (
        [(block.language, re.sub(r" *#.*", "", block.code)) for block in blocks]
        for blocks in map(read_blocks, (page, find_korean(page)))
    )
    assert ours == theirs
