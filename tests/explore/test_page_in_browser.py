"""Use the page of `spacy elmo explore` in a real browser, if one is installed."""

import re

import pytest
import spacy
from helpers.analysis import make_bilm, make_index
from helpers.browser import Visit, open_browser
from helpers.explore import make_bilm_with_softmax, make_explorer, serve_page

from spacy_elmo.explore.corpus_search import CorpusSearch
from spacy_elmo.explore.explorer import ExploredBiLM, Explorer
from spacy_elmo.explore.web_app import FOLDER

pytest.importorskip("uvicorn", reason="needs uvicorn")

CORPUS = [
    ["They", "stick", "together", ","],
    ["A", "<b>", "stone", "&amp;", "a", "plan"],
]
WIDTH = "() => document.documentElement.scrollWidth"
# Find elements that are wider than the window and cannot be scrolled.
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter((element) =>
  !element.closest(".scroll, .unseen, option") &&
  element.getBoundingClientRect().right > innerWidth + 1)
  .map((element) => element.outerHTML)"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Serve a biLM with a corpus and without a softmax."""
    bilm = make_bilm()
    index = make_index(bilm, tmp_path_factory.mktemp("corpus"), CORPUS)
    with serve_page(make_explorer(bilm, corpora=[CorpusSearch(index)])) as url:
        yield url


@pytest.fixture(scope="module")
def both(plain):
    """Serve two biLMs, the second one with a softmax."""
    with serve_page(make_explorer(make_bilm(), make_bilm_with_softmax())) as url:
        yield url


@pytest.fixture(scope="module")
def korean():
    config = {"nlp": {"tokenizer": {"@tokenizers": "spacy.Tokenizer.v1"}}}
    nlp = spacy.blank("ko", config=config)
    with serve_page(Explorer([ExploredBiLM("작은 모델", make_bilm())], nlp)) as url:
        yield url


def choose(visit, word, number=0):
    """Click an occurrence of a word, and wait for its results."""
    buttons = visit.page.locator("#sentences").get_by_role(
        "button", name=word, exact=True
    )
    buttons.nth(number).click()
    visit.page.locator("#chosen strong").get_by_text(word, exact=True).wait_for()


def write(visit, text, first):
    """Write sentences, and wait until the first word has changed."""
    visit.page.get_by_label("Your sentences").fill(text)
    visit.page.locator("#sentences .word").first.get_by_text(first).wait_for()


def read_hits(visit):
    visit.page.wait_for_selector(".hits li")
    return visit.page.locator(".hits li").all_inner_texts()


def open_tab(visit, name):
    visit.page.get_by_role("tab", name=name).click()


def test_words_are_typed_and_clicked(browser, plain):
    with Visit(browser, plain) as visit:
        # The page begins with an example.
        assert len(read_hits(visit)) == 12
        assert visit.page.locator(".word[aria-pressed=true]").inner_text() == "stick"
        write(visit, "Mud can't stick.\nA stick & a <b>stone</b>!", "Mud")
        assert "Click a word first." in visit.page.inner_text("#answer")
        assert visit.page.inner_text("#sentences").split("\n") == [
            "Mud can't stick.",
            "A stick & a <b>stone</b>!",
        ]
        choose(visit, "stick")
        visit.page.get_by_label("0, no context").check()
        first = visit.page.locator(".hits li").first
        first.get_by_text("1.00").wait_for()
        assert re.fullmatch(
            r"cosine\s+1\.00\s+A stick & a <b>stone</b>!", first.inner_text()
        )
        # A neighbour can be clicked as well.
        first.get_by_role("button").click()
        visit.page.get_by_text("sentence 2", exact=True).wait_for()
        assert visit.said == []
        assert all(address.startswith(plain) for address in visit.asked)


def test_corpus_layers_and_sliders_change_the_neighbors(browser, plain):
    with Visit(browser, plain) as visit:
        visit.page.get_by_label("the corpus (10 words)").check()
        visit.page.get_by_text("together").first.wait_for()
        seen = [read_hits(visit)]
        assert any("A <b> stone &amp; a plan" in hit for hit in seen[0])
        for layer in ("0, no context", "1", "2, top", "Mix"):
            visit.page.get_by_label(layer, exact=True).check()
            visit.page.wait_for_timeout(300)
            seen.append(read_hits(visit))
        assert seen[4] == seen[0]
        assert len({tuple(hits) for hits in seen}) == 4
        slider = visit.page.get_by_label("Layer 0")
        assert slider.get_attribute("aria-valuetext") == "33 %"
        slider.focus()
        visit.page.keyboard.press("Home")
        assert slider.get_attribute("aria-valuetext") == "0 %"
        assert (
            visit.page.get_by_label("Layer 2").get_attribute("aria-valuetext") == "50 %"
        )
        visit.page.wait_for_timeout(300)
        assert read_hits(visit) != seen[0]
        for name in ("Layer 1", "Layer 2"):  # all at 0: equal weights again
            visit.page.get_by_label(name).focus()
            visit.page.keyboard.press("Home")
        visit.page.wait_for_timeout(300)
        assert read_hits(visit) == seen[0]
        assert visit.said == []


def test_page_can_be_used_with_the_keyboard(browser, plain):
    with Visit(browser, plain) as visit:
        write(visit, "one two three\nfour five", "one")
        visit.page.get_by_label("Your sentences").focus()
        press = visit.page.keyboard.press
        press("Tab")
        focused = "() => document.activeElement.textContent"
        words = [visit.run(focused)]
        for key in ("ArrowRight", "ArrowDown", "ArrowUp", "End", "ArrowDown", "Home"):
            press(key)
            words.append(visit.run(focused))
        assert words == ["one", "two", "five", "two", "three", "five", "four"]
        press("Enter")
        visit.page.locator("#chosen strong").get_by_text("four").wait_for()
        press("Tab")
        assert visit.run(focused) == "Nearest contexts"
        press("ArrowRight")
        tabs = visit.page.get_by_role("tab")
        assert [tab.get_attribute("aria-selected") for tab in tabs.all()] == [
            "false",
            "true",
            "false",
            "false",
        ]
        assert visit.said == []


def test_without_a_softmax_the_page_says_so(browser, plain):
    with Visit(browser, plain) as visit:
        for name in ("Likely words", "Surprisal"):
            open_tab(visit, name)
            visit.page.get_by_text("This biLM has no softmax").wait_for()
        assert visit.said == []
        assert not [x for x in visit.asked if "predictions" in x or "surprisal" in x]


def test_two_bilms_are_shown_side_by_side(browser, both):
    with Visit(browser, both) as visit:
        visit.page.get_by_role("heading", name="bilm-1").wait_for()
        assert visit.page.locator(".column").count() == 2
        assert len(read_hits(visit)) == 24
        open_tab(visit, "Likely words")
        visit.page.locator(".hits mark").wait_for()
        first, second = visit.page.locator(".column").all_inner_texts()
        assert "no softmax" in first and "%" in second
        open_tab(visit, "Surprisal")
        visit.page.wait_for_selector(".bits")
        rows = visit.page.locator(".bits tbody tr")
        assert rows.count() == 9
        assert re.fullmatch(r"stick\s+\d\.\d\s+\d\.\d", rows.nth(2).inner_text())
        open_tab(visit, "Two sentences")
        visit.page.wait_for_selector(".heat")
        assert visit.page.locator(".heat").count() == 2
        assert visit.said == []


def test_heat_map_compares_two_sentences(browser, plain):
    with Visit(browser, plain) as visit:
        write(visit, "one two\nthree\none six one", "one")
        open_tab(visit, "Two sentences")
        visit.page.get_by_label("Columns").select_option("3. one six one")
        visit.page.get_by_label("0, no context").check()
        visit.page.locator(".heat td").get_by_text("1.00").first.wait_for()
        table = visit.page.locator(".heat tbody tr").all_inner_texts()
        assert re.fullmatch(r"one\s+1\.00\s+−?\.\d\d\s+1\.00", table[0])
        assert len(table) == 2
        cells = visit.page.locator(".heat td[data-row]")
        cells.nth(2).hover()
        assert visit.page.inner_text(".pointed") == "one and one: 1.00"
        colors = """() => [...document.querySelectorAll(".heat td[data-row]")].map(
          (cell) => getComputedStyle(cell).backgroundColor)"""
        found = visit.run(colors)
        assert found[0] == found[2] != found[1]
        # Fewer sentences than before.
        write(visit, "nine", "nine")
        visit.page.wait_for_function(
            "() => document.querySelectorAll('.heat tbody tr').length === 1"
        )
        assert visit.said == []


def test_problems_are_shown_and_go_away(browser, plain):
    with Visit(browser, plain) as visit:
        problem = visit.page.get_by_role("alert")
        visit.page.get_by_label("Your sentences").fill("word " * 2_001)
        problem.get_by_text("too long: at most 10,000 characters").wait_for()
        visit.page.get_by_label("Your sentences").fill("a\n" * 201)
        problem.get_by_text("too many sentences: at most 200").wait_for()
        visit.page.get_by_role("button", name="한국어").click()
        visit.page.get_by_label("문장 입력").fill("a\n" * 202)
        problem.get_by_text("문장이 너무 많습니다").wait_for()
        visit.page.get_by_role("button", name="English").click()
        visit.run("() => { document.querySelector('#text').value = 'half \\ud800'; }")
        visit.page.get_by_label("Your sentences").press("End")
        visit.page.get_by_label("Your sentences").type(".")
        problem.wait_for(state="hidden")
        assert all("413" in message for message in visit.said)
        visit.page.get_by_label("Your sentences").fill("")
        visit.page.get_by_text("Type a sentence first.").wait_for()


def test_a_server_that_is_gone_is_noticed(browser):
    with serve_page(make_explorer()) as url:
        visit = Visit(browser, url)
    with visit:
        visit.page.get_by_label("Your sentences").fill("more")
        visit.page.get_by_text("The server does not answer.").wait_for()


def test_language_is_that_of_the_browser_and_can_be_changed(browser, plain):
    with Visit(browser, plain, locale="ko-KR") as visit:
        assert visit.page.title() == "문맥 속의 단어"
        assert visit.run("() => document.documentElement.lang") == "ko"
        assert visit.page.locator("#sentences li").first.get_attribute("lang") == "en"
        visit.page.get_by_role("button", name="English").click()
        assert visit.page.title() == "Words in context"
        visit.page.reload()
        visit.page.wait_for_selector("body[data-drawn]")
        assert visit.page.title() == "Words in context"
        assert visit.said == []
    with Visit(browser, plain, locale="fi-FI") as visit:
        assert visit.page.title() == "Words in context"


def test_korean_sentences_have_korean_words(browser, korean):
    with Visit(browser, korean, 360, locale="ko-KR") as visit:
        assert visit.page.locator("#chosen strong").inner_text() == "눈은"
        visit.page.get_by_label("문장 입력").fill("첫눈이 내린다.")
        visit.page.get_by_role("button", name="첫눈이").click()
        visit.page.locator("#chosen strong").get_by_text("첫눈이").wait_for()
        assert visit.page.inner_text("#counted") == "문장 1개, 단어 3개"
        assert visit.run(WIDTH) == 360
        assert visit.said == []


@pytest.mark.parametrize("locale", ["en-US", "ko-KR"])
@pytest.mark.parametrize("width", [360, 1280])
def test_page_fits_in_every_view(browser, both, width, locale):
    with Visit(browser, both, width, locale=locale) as visit:
        text = f"{'long' * 200} word.\n" + "many words " * 40
        visit.page.locator("#text").fill(text)
        visit.page.get_by_role("button", name="word", exact=True).click()
        for tab in visit.page.get_by_role("tab").all():
            tab.click()
            visit.page.wait_for_selector(".column")
            visit.page.wait_for_timeout(200)
            assert visit.run(WIDTH) == width
            assert visit.run(OUTSIDE) == []
        assert visit.said == []


def test_colours_follow_the_scheme(browser, plain):
    color = "() => getComputedStyle(document.body).backgroundColor"
    with Visit(browser, plain, scheme="dark") as visit:
        dark = visit.run(color)
        open_tab(visit, "Two sentences")
        visit.page.get_by_text("The brighter, the more similar.").wait_for()
        visit.page.emulate_media(color_scheme="light")
        visit.page.get_by_text("The darker, the more similar.").wait_for()
        assert visit.run(color) != dark
        assert visit.said == []


def test_both_languages_say_the_same_things():
    code = (FOLDER / "texts.js").read_text("utf8")
    english, korean = re.findall(r"^const [A-Z]+ = \{\n(.*?)^\};", code, re.M | re.S)[
        :2
    ]
    keys = [re.findall(r"^  (\w+):", part, re.M) for part in (english, korean)]
    assert set(keys[1]) - {"invalid"} == set(keys[0])
    for name in keys[0]:
        values = [
            set(
                re.findall(
                    r"\{\w+\}",
                    re.search(rf"^  {name}:(.*?)^  \w", part, re.M | re.S)[1],
                )
            )
            for part in (f"{english}  x", f"{korean}  x")
        ]
        assert values[0] == values[1], name
