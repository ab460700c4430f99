"""Run the scripts of examples/ with tiny models, and its notebook as it is."""

import ast
import json
import re
import runpy
import sys
from itertools import permutations

import numpy as np
import pytest
import spacy
from helpers.notebooks import run_cells
from helpers.pages import ROOT
from helpers.pipelines import run_python, save_bilm
from helpers.pretraining import CONFIG

from spacy_elmo import load_bilm
from spacy_elmo.analysis.sense_map import (
    neighbor_accuracy,
    occurrence_vectors,
    read_occurrences,
    vector_names,
)
from spacy_elmo.text.tokenizers import RULES, load_language

EXAMPLES = ROOT / "examples"
TREEBANK = ROOT / "assets" / "treebank"
SENSES = ROOT / "assets" / "senses"


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs a script as a user does, but in this process."""

    def call(name, *args):
        monkeypatch.setattr(sys, "argv", [name, *map(str, args)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return call


@pytest.mark.slow
@pytest.mark.parametrize("lang, word", [("en", "bank"), ("ko", "배")])
def test_word_senses(run, tmp_path, lang, word):
    source = save_bilm(tmp_path / "bilm")
    out = run("word_senses.py", "--lang", lang, "--word", word, "--bilm", source)

    occurrences = [
        occurrence
        for occurrence in read_occurrences(SENSES / f"{lang}.jsonl")
        if occurrence.word == word
    ]
    senses = [occurrence.sense for occurrence in occurrences]
    nlp = load_language(lang, RULES)
    bilm = load_bilm(source)
    vectors = occurrence_vectors(bilm, nlp, occurrences)
    (n,) = re.search(r"has the same sense, of (\d+):", out).groups()
    assert int(n) == len(senses)
    for name, said in (
        ("2", "by the word in its context"),
        ("context 1", "by layer 1 of its neighbors"),
        ("sentence 2", "by the top layer of all other words"),
    ):
        chosen = vectors[:, vector_names(bilm).index(name)]
        right = int(re.search(rf"(\d+) {said}", out)[1])
        assert right == round(neighbor_accuracy(chosen, senses) * len(senses))
    pairs = [a == b for a, b in permutations(senses, 2)]
    assert f"{np.mean(pairs) * len(senses):4.0f} by chance" in out
    assert ("the particle on a noun" in out) == (lang == "ko")

    rows = re.findall(r"^ *\d+ \w+ +([ \d.-]+)$", out, re.M)
    table = np.array([[float(cell) for cell in row.split()] for row in rows])
    assert table.shape == (3 * len(set(senses)),) * 2
    np.testing.assert_array_equal(table, table.T)
    shown = [n for n, sense in enumerate(senses) if senses[:n].count(sense) < 3]
    top = vectors[:, bilm.config.lstm.n_layers]
    units = top[shown] / np.linalg.norm(top[shown], axis=1, keepdims=True)
    np.testing.assert_allclose(table, units @ units.T, atol=0.0051)
    assert len(re.findall(r"^ +\d\.\d\d  \w+$", out, re.M)) == len(set(senses))


def test_word_senses_lists_the_known_words_if_the_word_is_unknown(run):
    with pytest.raises(SystemExit, match="expected one of .*눈"):
        run("word_senses.py", "--lang", "ko", "--word", "bank")


@pytest.mark.slow
def test_only_the_tagger_with_elmo_depends_on_the_bilm(run, tmp_path):
    sources = [save_bilm(tmp_path / f"{seed}", seed) for seed in (0, 1)]
    found = []
    for source in sources:
        args = ["--bilm", source, "--sentences", 40, "--epochs", 2]
        args += ["--lang", "ko", "--treebank", TREEBANK / "ko"]
        out = run("tagger_from_200_sentences.py", *args)
        found.append(re.findall(r"(\w+) ELMo: ([\d.]+)% .* 40 sentences", out))
    first, second = found
    assert [name for name, _ in first] == ["without", "with"]
    assert all(0 < float(accuracy) < 100 for _, accuracy in first)
    assert first[0] == second[0]
    assert first[1] != second[1]


@pytest.mark.slow
def test_your_own_language_resumes_and_saves_a_pipeline(run, tmp_path):
    config, output = tmp_path / "tiny.cfg", tmp_path / "mine"
    config.write_text(CONFIG, "utf8")
    args = [SENSES / "ko.jsonl", "--lang", "ko", "--tokenizer", "spacy.Tokenizer.v1"]
    args += ["--config", config, "--output", output, "--sentences", 40]
    # Worker processes import the script, so it cannot run within this process.
    out = run_python(EXAMPLES / "your_own_language.py", *args)
    assert "Continuing" not in out
    assert re.search(r"^Most similar to .*\[\w+\]", out, re.M)

    config.write_text(CONFIG.replace("max_steps = 12", "max_steps = 16"), "utf8")
    out = run("your_own_language.py", *args, "--word", "눈이")
    assert "Continuing from step 12" in out
    assert load_bilm(output / "model-last").config.training["steps"] == 16
    assert re.search(r"^Most similar to .*\[눈이\]", out, re.M)
    cosines = [float(x) for x in re.findall(r"^  ([\d.]+)  .*\[.+\]", out, re.M)]
    assert len(cosines) == 10 and cosines == sorted(cosines, reverse=True)

    nlp = spacy.load(output / "pipeline")
    bilm = load_bilm(output / "model-best")
    words = "눈이 내린다 .".split()
    doc = nlp(spacy.tokens.Doc(nlp.vocab, words=words))
    np.testing.assert_allclose(doc.tensor, bilm.embed([words])[0].mean(0), atol=1e-5)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda p: p.name)
def test_docstring_says_how_to_run_it(path):
    doc = ast.get_docstring(ast.parse(path.read_text("utf8")))
    assert f"python examples/{path.name}" in doc


@pytest.mark.slow
def test_notebook_shows_what_it_says(monkeypatch):
    """Compare what the cells give with the outputs that the file contains."""
    notebook = json.loads((EXAMPLES / "words_in_context.ipynb").read_text("utf8"))
    monkeypatch.chdir(EXAMPLES)
    outputs = run_cells(notebook)
    shares = []
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, output in zip(cells, outputs, strict=True):
        printed = "".join(o["text"] for o in cell["outputs"] if "text" in o)
        assert re.sub(r"\d", "0", printed) == re.sub(r"\d", "0", output.printed)
        saved = [o["data"] for o in cell["outputs"] if "data" in o]
        if output.value is not None:
            (data,) = saved
            assert data["text/plain"] == repr(output.value)
            html = output.value._repr_html_() if "text/html" in data else ""
            shares += re.findall(r"has the same sense: (\d+)", html)
        if "fair" in output.printed:
            same, other = map(float, re.findall(r"\d\.\d+", output.printed))
            assert same > other + 0.05
    stick, snow = map(int, shares)
    assert stick > 80 and snow >= 60
