"""Test the pictures of spacy_elmo.show: what they contain, and that text is escaped."""

import re
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
import spacy
from helpers.browser import Visit, open_browser
from helpers.pipelines import pipeline_with_surprisal

import spacy_elmo
from spacy_elmo import show

EVIL = "<b>&\"'"
USES = {
    "wood": ["He threw a stick and a stone.", "The dog found a stick."],
    "stay": ["We should stick to the plan.", "Let us stick to it."],
}


@pytest.fixture(scope="module")
def nlp(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bilm")
    return pipeline_with_surprisal(folder, ["a", "stick", "stone"])


@pytest.fixture(scope="module")
def pictures(nlp):
    """Make a picture of each kind, all with text that must be escaped."""
    one, two = nlp(f"He threw a {EVIL} stick ."), nlp(f"A stone {EVIL} .")
    uses = {EVIL: [f"A stick {EVIL}.", "One stick!"], "other": ["A stick, or a stone."]}
    return {
        "senses": show.senses(nlp, uses, "stick"),
        "similarity": show.similarity(one, two),
        "layers": show.layers(one),
        "surprisal": show.surprisal(one),
    }


def parse(picture):
    """Parse the HTML as XML, which fails if a tag is not closed or text not escaped.
    Return its text."""
    html = picture._repr_html_()
    root = ElementTree.fromstring(f"<div>{html}</div>")
    root.remove(root.find("style"))
    return "".join(root.itertext())


@pytest.mark.parametrize("kind", ["senses", "similarity", "layers", "surprisal"])
def test_pictures_are_whole_escaped_and_need_nothing_else(pictures, kind, tmp_path):
    picture = pictures[kind]
    text = re.sub(r"\d", "", parse(picture))  # without the bits of surprisal
    assert "<b>" in text and "&" in text
    html = picture._repr_html_()
    assert "<b>" not in html and "<script" not in html and "http" not in html
    assert "url(" not in html and "@import" not in html
    picture.save(tmp_path / "picture.html")
    page = (tmp_path / "picture.html").read_text("utf8")
    assert page.startswith("<!DOCTYPE html>") and html in page
    assert f"<title>{picture.title}</title>" in page
    assert repr(picture) == f"<Picture: {picture.title}>"


def test_styles_apply_to_the_picture_alone(pictures):
    style = re.search(r"<style>(.*?)</style>", pictures["layers"]._repr_html_(), re.S)
    rules = re.sub(r"@media[^{]*\{", "", style[1])
    for selectors in re.findall(r"([^{}]+)\{", rules):
        for selector in selectors.split(","):
            assert selector.strip().startswith(".spacy-elmo-picture"), selector


def test_similarity_shows_cosines(nlp):
    one, two = nlp("He threw a stick ."), nlp("A \n stone")
    html = show.similarity(one, two)._repr_html_()
    found = re.findall(r'title="(\S+) / (\S+): (\S+)">([^<]+)<', html)
    assert len(found) == 5 * 2  # without the line break
    for word, other, value, shown in found:
        (a,) = (token for token in one if token.text == word)
        (b,) = (token for token in two if token.text == other)
        assert value == shown
        assert float(value) == pytest.approx(a._.elmo_similarity(b), abs=0.0051)
    for layer in (0, 2):
        html = show.similarity(one[3:4], two[:1], layer=layer)._repr_html_()
        a, b = one._.elmo.layers[3, layer], two._.elmo.layers[0, layer]
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert f": {cosine:.2f}" in html


def test_layers_have_a_map_each(nlp):
    picture = show.layers(nlp("One stick and a stone"))
    assert [f"Layer {n}" in parse(picture) for n in range(4)] == [True] * 3 + [False]
    assert picture._repr_html_().count("<td class") == 3 * 5 * 5


def test_surprisal_shows_the_bits_of_each_word(nlp):
    doc = nlp("A stick, a stone")
    html = show.surprisal(doc)._repr_html_()
    found = re.findall(r'title="(\S+) bits">(\S+?)<rt>', html)
    assert [word for _, word in found] == 2 * [token.text for token in doc]
    expected = doc._.elmo_surprisal.T.reshape(-1)
    np.testing.assert_allclose([float(x) for x, _ in found], expected, atol=0.051)


def test_senses_marks_each_use(nlp):
    picture = show.senses(nlp, USES, "Stick")
    html = picture._repr_html_()
    assert html.count("<mark>stick</mark>") == 4 and picture.title.startswith("4 uses")
    assert html.count("<h4>") == 2 and "nearest other use" in html
    plain = show.senses(nlp, [*USES["wood"], "A stick, another stick."], "stick")
    html = plain._repr_html_()
    assert html.count("<mark>") == 4 and "<h4>" not in html
    assert "nearest other use" not in html


def test_senses_finds_words_with_endings_and_of_several_tokens(nlp):
    html = show.senses(nlp, ["Old sticks.", "A stick."], "stick")._repr_html_()
    assert "Old <mark>stick</mark>s." in html
    html = show.senses(nlp, ["To New York!", "new york"], "New York")._repr_html_()
    assert "<mark>New York</mark>" in html and "<mark>new york</mark>" in html


@pytest.mark.parametrize("layer", [0, 2, "mix", "context", "sentence"])
def test_senses_draws_the_points_inside_the_map(nlp, layer):
    html = show.senses(nlp, USES, "stick", layer=layer)._repr_html_()
    places = re.findall(r"translate\((\S+) (\S+)\)", html.split("</svg>")[0])
    assert len(places) == 4
    assert all(11 <= float(x) <= 469 and 11 <= float(y) <= 309 for x, y in places)


def test_layers_may_be_numbers_of_numpy(nlp):
    doc = nlp("A stick")
    one, two = (show.similarity(doc, doc, layer=n) for n in (1, np.int64(1)))
    assert one._repr_html_() == two._repr_html_()


@pytest.mark.slow
def test_bad_input_gets_a_sentence(nlp):
    doc, blank = nlp("A stick"), spacy.blank("en")
    plain = spacy.blank("en")
    plain.add_pipe("elmo", config={"bilm": nlp.get_pipe("elmo").model.shims[0].source})
    cases = [
        (lambda: show.senses(nlp, ["A stick", "None"], "stick"), "found no 'stick' in"),
        (lambda: show.senses(nlp, ["A stick"], "stick"), "found 1 uses of 'stick'"),
        (lambda: show.senses(nlp, [], "stick"), "found 0 uses of 'stick'"),
        (lambda: show.senses(nlp, "A stick", "stick"), "expected a list of sentences"),
        (lambda: show.senses(nlp, {"a": "b"}, "b"), "expected a list of sentences"),
        (
            lambda: show.senses(nlp, USES, "stick", layer=3),
            "layer is 3; expected 0 to 2",
        ),
        (lambda: show.similarity(doc, doc, layer=-1), "layer is -1; expected 0 to 2"),
        (lambda: show.similarity(doc, doc, layer="mix"), "layer is 'mix'; expected 0"),
        (lambda: show.similarity(doc, doc, layer=True), "layer is True; expected 0"),
        (
            lambda: show.senses(nlp, USES, "stick", layer=True),
            "layer is True; expected",
        ),
        (lambda: show.senses(nlp, ["a  b", "c  d"], " "), "found the word ' '"),
        (lambda: show.senses(nlp, USES, 3), "found the word 3; expected"),
        (lambda: show.similarity(doc, "text"), "found str; expected a Doc or a Span"),
        (lambda: show.similarity(doc, blank("A")), "this doc has no ELMo vectors"),
        (lambda: show.layers(nlp(" \n")), "found 0 words"),
        (lambda: show.layers(nlp("a " * 101)), "found 101 words; expected 1 to 100"),
        (lambda: show.surprisal(plain("A stick")), "surprisal was not computed"),
    ]
    for call, message in cases:
        with pytest.raises((ValueError, TypeError), match=re.escape(message)):
            call()


# The package


def test_dir_lists_what_there_is():
    assert dir(spacy_elmo) == ["BiLM", "Neighbors", "__version__", "load_bilm", "show"]
    for name in dir(spacy_elmo):
        assert getattr(spacy_elmo, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = spacy_elmo.nothing


def test_dir_imports_nothing():
    code = (
        "import sys, spacy_elmo; dir(spacy_elmo);"
        "print([m for m in ('torch', 'spacy', 'numpy', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


# In a browser


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_can_be_read(pictures, tmp_path, scheme):
    with open_browser() as browser:
        for kind, picture in pictures.items():
            path = tmp_path / f"{kind}.html"
            picture.save(path)
            for width in (360, 1280):
                with Visit(browser, path, width, scheme, ready="figure") as visit:
                    assert visit.run("() => document.body.scrollWidth") <= width
                    assert visit.said == [] and len(visit.asked) == 1
                    colors = visit.run(
                        "() => { const s = getComputedStyle(document.querySelector("
                        "'figure')); return [s.color, s.backgroundColor] }"
                    )
                    ink, card = (sum(map(int, re.findall(r"\d+", c))) for c in colors)
                    assert (ink < card) == (scheme == "light")
