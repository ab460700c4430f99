"""Train with configs that spaCy makes: with the lines of docs/downstream.md, and with
`elmo` between `tok2vec` and the components that listen to it."""

import re

import pytest
import spacy
import srsly
from helpers.command import run_spacy
from helpers.pages import DOCS, read_blocks
from helpers.pipelines import SENTENCES, make_docs
from helpers.tasks import mixes_of
from spacy.tokens import DocBin
from spacy.training import Corpus

STEPS = ["--training.max_steps", "12", "--training.eval_frequency", "6"]


def add_elmo(path):
    """Change a config as the page says: put the lines in the place of the sections with
    the same names, and "elmo" in the place of "tok2vec"."""
    lines = read_blocks(DOCS / "downstream.md", "ini")[0].code
    assert len([line for line in lines.split("\n") if line]) == 6
    text = path.read_text("utf8").replace('["tok2vec",', '["elmo",')
    for name in re.findall(r"^\[(.*)\]$", lines, re.M):
        text = re.sub(rf"^\[{re.escape(name)}\]\n(?:.+\n)*", "", text, flags=re.M)
    path.write_text(f"{text}\n{lines}", "utf8")


@pytest.mark.slow
def test_six_lines_add_elmo_to_a_config_of_spacy(tmp_path):
    docs, config = tmp_path / "docs.spacy", tmp_path / "config.cfg"
    DocBin(docs=make_docs()).to_disk(docs)
    run_spacy("init", "config", config, "--lang", "en", "--pipeline", "tagger,ner")
    add_elmo(config)
    paths = ["--paths.train", docs, "--paths.dev", docs]
    run_spacy("debug", "config", config, *paths)
    run_spacy("train", config, "--output", tmp_path / "out", *paths, *STEPS)
    best = tmp_path / "out" / "model-best"
    run_spacy("evaluate", best, docs, "--output", tmp_path / "scores.json")
    assert srsly.read_json(tmp_path / "scores.json")["tag_acc"] > 0.8

    (tmp_path / "packages").mkdir()
    run_spacy(
        "package", best, tmp_path / "packages", "--name", "six", "--build", "none"
    )
    (package,) = (tmp_path / "packages").glob("en_six-*/en_six/en_six-*")
    nlp = spacy.load(package)
    assert nlp.pipe_names == ["elmo", "tagger", "ner"]
    assert len(mixes_of(nlp, "tagger")) == len(mixes_of(nlp, "ner")) == 2
    words = [token.split("|") for token in SENTENCES[0].split()]
    found = nlp(" ".join(word[0] for word in words))
    assert [token.tag_ for token in found] == [word[1] for word in words]


@pytest.mark.slow
def test_a_pipeline_of_init_config_scores_as_without_elmo(tmp_path):
    docs, scores = tmp_path / "docs.spacy", {}
    DocBin(docs=make_docs()).to_disk(docs)
    paths = ["--paths.train", docs, "--paths.dev", docs]
    for pipeline in ("tagger,ner", "elmo,tagger,ner"):
        config, output = tmp_path / f"{pipeline}.cfg", tmp_path / pipeline
        run_spacy("init", "config", config, "--lang", "en", "--pipeline", pipeline)
        run_spacy("train", config, "--output", output, *paths, *STEPS)
        nlp = spacy.load(output / "model-last")
        scores[pipeline] = nlp.evaluate(list(Corpus(docs)(nlp)))
    assert nlp.pipe_names == ["tok2vec", "elmo", "tagger", "ner"]
    assert nlp("A few words")._.elmo.layers.shape[:2] == (3, 3)
    for name in ("tag_acc", "ents_f"):
        assert scores["elmo,tagger,ner"][name] == scores["tagger,ner"][name]
