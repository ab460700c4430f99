"""The biLMs that are bundled with the package, and which of them a pipeline uses."""

import logging
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import spacy
from typer.testing import CliRunner

from spacy_elmo import load_bilm
from spacy_elmo.analysis.sense_map import map_senses, read_occurrences
from spacy_elmo.bilm import SourceError, load_data
from spacy_elmo.bilm.formats.bundled import bundled_names, find_bundled
from spacy_elmo.cli import app
from spacy_elmo.text.tokenizers import RULES, load_language

ROOT = Path(__file__).parents[3]
TEXTS = {"en": "Let's stick to improvisation.", "ko": "밤새 눈이 내렸다."}
CARD = ("Data", "Licence", "Training", "Perplexity", "Limits")
# Vectors that separate the senses of words, and words for which they do.
APART = {
    "en_elmo_sm": ("context 1", ["play", "stick", "bank"]),
    "ko_elmo_sm": ("sentence 2", ["눈", "사과", "배"]),
    "ko_elmo_morph_sm": ("2", ["손", "시장", "밤"]),
}
MECAB = "spacy-elmo.MecabTokenizer.v1"


@pytest.fixture(params=bundled_names())
def name(request):
    if request.param == "ko_elmo_morph_sm":
        pytest.importorskip("mecab")
    return request.param


@pytest.fixture
def folder(name):
    return find_bundled(name)


@pytest.fixture
def text(name):
    return TEXTS[name[:2]]


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def blank(name):
    """Load a blank pipeline of the language and with the tokens of a bundled biLM."""
    return load_language(name[:2], MECAB if "morph" in name else RULES)


def vectors(nlp, text, **config):
    nlp.add_pipe("elmo", config=config)
    return nlp(text).tensor


def test_bundled_models_are_small(folder):
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 16e6


@pytest.mark.parametrize(
    "name, sentence, expected, unexpected",
    [
        ("en_elmo_sm", "He was born in London in 1950 .", 3, 4),
        ("ko_elmo_sm", "그는 1950 년 서울에서 태어났다 .", 5, 3),
        ("ko_elmo_morph_sm", "눈 이 펑펑 내렸 다 .", 4, 2),
    ],
)
def test_bundled_models_predict_words(name, sentence, expected, unexpected):
    bilm, words = load_bilm(name), sentence.split()
    guesses = [word for word, _ in bilm.predict(words, expected, n=3)]
    assert words[expected] in guesses
    (bits,) = bilm.surprisal([words])
    assert bits[expected].mean() < bits[unexpected].mean()


def test_the_words_of_all_rounds_are_those_of_the_model_card(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    training = load_data(folder).config.training
    n_words = training.get("total_words", training["words"])  # of one round alone
    millions = n_words / 1e6
    assert f"In all it read {millions:.1f} million words" in card
    assert n_words >= training["words"]


def test_model_card_names_data_and_licence(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    titles = [line[3:] for line in card.splitlines() if line.startswith("## ")]
    assert set(CARD) <= set(titles)
    assert "CC BY-SA" in card and "Wikipedia" in card


def test_all_pages_give_the_perplexity(folder):
    perplexity = load_bilm(folder).config.training["perplexity"]["mean"]
    pages = [
        "docs/performance.md",
        "docs/performance.ko.md",
        "benchmarks/RESULTS.md",
    ]
    for page in (folder / "README.md", *(ROOT / page for page in pages)):
        assert f"{perplexity:.1f}" in page.read_text(encoding="utf-8"), page


def test_a_pipeline_gets_the_model_of_its_language_and_tokens(name, text, silent):
    found = vectors(blank(name), text)
    named = vectors(blank(name), text, bilm=name)
    np.testing.assert_array_equal(found, named)
    words = [token.text for token in blank(name)(text)]
    (layers,) = load_bilm(name).embed([words])
    np.testing.assert_allclose(found, layers.mean(0), atol=1e-5)


def test_other_languages_get_the_english_model_with_a_warning():
    with pytest.warns(UserWarning, match="none for 'de'.*'bilm'"):
        found = vectors(load_language("de", RULES), "Schnee")
    expected = vectors(load_language("en", RULES), "Schnee")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "tokens_of, bilm, expected",
    [
        (
            "ko_elmo_morph_sm",
            "ko_elmo_sm",
            "'ko_elmo_sm' was trained on words between spaces.*are morphemes",
        ),
        (
            "ko_elmo_sm",
            "ko_elmo_morph_sm",
            "'ko_elmo_morph_sm' was trained on morphemes.*are words between spaces",
        ),
    ],
)
def test_a_bilm_of_other_tokens_warns(tokens_of, bilm, expected, silent):
    pytest.importorskip("mecab")
    nlp = blank(tokens_of)
    nlp.add_pipe("elmo", config={"bilm": bilm})
    with pytest.warns(UserWarning, match=expected):
        nlp(TEXTS["ko"])
    nlp(TEXTS["ko"])  # says it once


def test_a_replaced_tokenizer_counts(silent):
    pytest.importorskip("mecab")
    nlp = blank("ko_elmo_sm")
    nlp.tokenizer = load_language("ko", MECAB).tokenizer
    expected = vectors(blank("ko_elmo_morph_sm"), TEXTS["ko"])
    np.testing.assert_array_equal(vectors(nlp, TEXTS["ko"]), expected)


def test_the_log_says_which_bilm_is_used(name, text, caplog):
    logger = logging.getLogger("spacy")
    logger.addHandler(caplog.handler)
    with caplog.at_level(logging.INFO, "spacy"):
        vectors(blank(name), text)
    logger.removeHandler(caplog.handler)
    assert f"using the biLM '{name}'" in caplog.text


def test_a_task_with_its_own_bilm_gets_the_model_of_its_language():
    nlp = blank("ko_elmo_sm")
    model = {
        "@architectures": "spacy-elmo.ElmoTok2Vec.v1",
        "elmo": {"@architectures": "spacy-elmo.ElmoLayers.v1"},
        "mix": {"@architectures": "spacy-elmo.ElmoMix.v1"},
    }
    tagger = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": model}}
    nlp.add_pipe("tagger", config=tagger)
    doc = nlp.make_doc(TEXTS["ko"])
    for token in doc:
        token.tag_ = "X"
    example = spacy.training.Example(nlp.make_doc(TEXTS["ko"]), doc)
    nlp.initialize(lambda: [example])
    elmo = next(node for node in nlp.get_pipe("tagger").model.walk() if node.shims)
    expected = load_bilm("ko_elmo_sm").state_dict()
    found = elmo.shims[0].bilm.state_dict()
    assert found.keys() == {key for key in expected if not key.startswith("softmax.")}
    assert all((found[key] == expected[key]).all() for key in found)


def test_a_saved_pipeline_needs_no_bundled_model(
    name, text, tmp_path, monkeypatch, silent
):
    nlp = blank(name)
    expected = vectors(nlp, text)
    nlp.to_disk(tmp_path)
    monkeypatch.setattr("spacy_elmo.bilm.formats.bundled.FOLDER", tmp_path / "nothing")
    np.testing.assert_array_equal(spacy.load(tmp_path)(text).tensor, expected)


def test_commands_accept_the_name(name):
    done = CliRunner().invoke(app, ["info", name])
    assert done.exit_code == 0, done.output


def test_an_existing_path_is_preferred_to_a_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir(name)
    with pytest.raises(SourceError, match="found nothing"):
        load_bilm(name)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(SourceError, match=", ".join(bundled_names())):
        load_bilm("en_wiki_xl")


@pytest.mark.slow
def test_senses_come_apart(name):
    occurrences = read_occurrences(ROOT / "assets" / "senses" / f"{name[:2]}.jsonl")
    found = map_senses(load_bilm(name), blank(name), occurrences)
    by, words = APART[name]
    for word in found["words"]:
        if word["word"] in words:
            accuracy = {layer["layer"]: layer["accuracy"] for layer in word["layers"]}
            assert accuracy[by] > word["majority"], word["word"]


@pytest.mark.parametrize("engine, name", [("torch", "BiLM"), ("numpy", "NumpyBiLM")])
def test_repr_has_source_and_sizes(engine, name):
    bilm = load_bilm("en_elmo_sm", engine=engine)
    shown = (
        f"<{name} from en_elmo_sm: 2 + 1 layers, width 384, softmax of 30,000 words>"
    )
    assert repr(bilm) == shown
