"""Draw how ELMo works: the biLM, the mix, [x_k ; ELMo_k], and where ELMo joins."""

from pathlib import Path

from markupsafe import Markup
from svg import arrow, box, element, save_svg, text

SENTENCE = {"en": ["the", "dog", "barks"], "ko": ["개가", "크게", "짖는다"]}
BLUE, ORANGE, GREEN, PINK, GRAY = (
    "series-1",
    "series-2",
    "series-3",
    "series-4",
    "other",
)


def label(x: float, y: float, width: float, words: str, color: str) -> Markup:
    """Draw a box of one line of text. x and y are its upper left corner."""
    return box(x, y, width, 34, color) + text(x + width / 2, y + 22, words, "middle")


def tall_label(
    x: float, y: float, size: tuple[float, float], words: str, color: str
) -> Markup:
    """Draw a box with text in its middle."""
    width, height = size
    middle = text(x + width / 2, y + height / 2 + 5, words, "middle")
    return box(x, y, width, height, color) + middle


def draw_bilm(path: Path, lang: str) -> None:
    """Draw both directions of the biLM over a sentence."""
    en = lang == "en"
    names = {
        BLUE: "reads forward, guesses the next word"
        if en
        else "앞에서부터 읽으며 다음 단어 예측",
        ORANGE: "reads backward, guesses the previous word"
        if en
        else "뒤에서부터 읽으며 앞 단어 예측",
    }
    words = SENTENCE[lang]
    targets = {BLUE: [*words[1:], "⟨/S⟩"], ORANGE: ["⟨S⟩", *words[:-1]]}
    parts = []
    for side, color in enumerate((BLUE, ORANGE)):
        left = 30 + side * 380
        parts.append(text(left, 36, names[color], "strong"))
        for k, word in enumerate(words):
            x = left + k * 120
            parts.append(text(x + 50, 74, targets[color][k], "middle strong"))
            parts.append(arrow((x + 50, 104), (x + 50, 82)))
            parts.append(label(x, 104, 100, "softmax", GRAY))
            for row in range(2):
                y = 172 + row * 68
                parts.append(arrow((x + 50, y), (x + 50, y - 34)))
                parts.append(label(x, y, 100, f"LSTM {2 - row}", color))
                if k < len(words) - 1:
                    ends = [(x + 100, y + 17), (x + 120, y + 17)]
                    parts.append(arrow(*(ends if color == BLUE else ends[::-1])))
            parts.append(arrow((x + 50, 308), (x + 50, 274)))
            parts.append(label(x, 308, 100, f"x_{k + 1}", GREEN))
            parts.append(arrow((x + 50, 366), (x + 50, 342)))
            parts.append(text(x + 50, 384, word, "middle"))
    note = (
        "A CNN makes x_k from the bytes of a word; both directions share it."
        if en
        else "x_k는 단어의 바이트에서 CNN으로 만들며, 두 방향이 함께 씁니다."
    )
    parts.append(text(30, 420, note, "soft"))
    title = (
        "The biLM: two LSTM layers in each direction"
        if en
        else "biLM: 방향마다 LSTM 두 층"
    )
    save_svg(path, (800, 440), parts, title=title, lang=lang)


def draw_mix(path: Path, lang: str) -> None:
    """Draw how a task mixes the layers of a word."""
    en = lang == "en"
    rows = [
        ("h(k,2)", "LSTM 2", "s_2", PINK, 0.6),
        ("h(k,1)", "LSTM 1", "s_1", BLUE, 0.3),
        ("h(k,0)", "[x_k ; x_k]", "s_0", GREEN, 0.1),
    ]
    what = ["meaning", "grammar", "spelling"] if en else ["의미", "문법", "철자"]
    parts = []
    for row, (name, source, share, color, size) in enumerate(rows):
        y = 60 + row * 64
        parts.append(tall_label(30, y, (190, 40), f"{name} = {source}", color))
        parts.append(text(125, y + 55, what[row], "soft small middle"))
        parts.append(arrow((220, y + 20), (300, y + 20)))
        parts.append(text(260, y + 13, f"× {share}", "middle strong"))
        bar = element(
            "rect",
            x=306,
            y=y + 10,
            width=float(150 * size),
            height=20,
            rx=3,
            fill=f"var(--{color})",
        )
        parts.append(bar)
        parts.append(arrow((470, y + 20), (550, y + 20)))
    parts.append(tall_label(550, 60, (60, 168), "+", GRAY))
    parts.append(arrow((610, 144), (672, 144)))
    parts.append(text(640, 136, "× γ", "middle strong"))
    parts.append(tall_label(672, 120, (100, 48), "ELMo_k", ORANGE))
    head = (
        "Each task learns the shares s_0 + s_1 + s_2 = 1 and the scale γ"
        if en
        else "비율 s_0 + s_1 + s_2 = 1과 배율 γ를 과제마다 학습합니다"
    )
    parts.insert(0, text(30, 36, head, "strong"))
    title = "The mix of three layers" if en else "세 층의 믹스"
    save_svg(path, (800, 268), parts, title=title, lang=lang)


def draw_joined(path: Path, lang: str) -> None:
    """Draw two vectors one after the other."""
    en = lang == "en"
    own = "x_k: spaCy’s own, 96 numbers" if en else "x_k: spaCy의 임베딩, 96개"
    added = (
        "ELMo_k: from the whole sentence, 384 numbers"
        if en
        else "ELMo_k: 문장 전체에서 계산, 384개"
    )
    parts = [
        text(30, 38, own, "soft"),
        text(250, 38, added, "soft"),
        *draw_numbers(30, 8, GREEN),
        *draw_numbers(250, 24, ORANGE),
        element("path", d="M30 96v10H770v-10", class_="arrow"),
        text(400, 132, "[x_k ; ELMo_k]", "title middle"),
    ]
    title = "[x_k ; ELMo_k]"
    save_svg(path, (800, 152), parts, title=title, lang=lang)


def draw_numbers(x: float, count: int, color: str) -> list[Markup]:
    """Draw a vector as a row of squares of different shades."""
    return [
        element(
            "rect",
            x=float(x + n * 21.75),
            y=54,
            width=18,
            height=32,
            rx=3,
            fill=f"var(--{color})",
            fill_opacity=0.25 + 0.15 * (n * 7 % 6),
        )
        for n in range(count)
    ]


def draw_where(path: Path, lang: str) -> None:
    """Draw the two places of a component where ELMo joins."""
    en = lang == "en"
    steps = (
        ["embeddings", "encoder (CNN)", "tagger, parser, NER ..."]
        if en
        else ["임베딩", "인코더(CNN)", "태거, 구문 분석기, NER"]
    )
    vectors = ["x_k", "h_k"]
    parts = []
    for step, name in enumerate(steps):
        x = 30 + step * 280
        parts.append(tall_label(x, 60, (180, 46), name, (GREEN, BLUE, GRAY)[step]))
        if step < 2:
            parts.append(arrow((x + 180, 83), (x + 280, 83)))
            parts.append(text(x + 192, 76, vectors[step], "small"))
            parts.append(arrow((x + 230, 150), (x + 230, 87)))
            parts.append(text(x + 238, 128, f"ELMo_k ({step + 1})", "small"))
            where = ("where = “input”", "where = “output”")[step]
            parts.append(text(x + 230, 42, where, "soft middle"))
            parts.append(
                label(
                    x + 165, 150, 130, f"{'mix' if en else '믹스'} {step + 1}", ORANGE
                )
            )
            parts.append(arrow((x + 230, 216), (x + 230, 184)))
    name = (
        "elmo: one frozen biLM for all components"
        if en
        else "elmo: 모든 컴포넌트가 함께 쓰는 고정된 biLM"
    )
    parts.append(tall_label(150, 216, (500, 46), name, PINK))
    title = "Where ELMo joins a component" if en else "컴포넌트에 ELMo가 붙는 곳"
    save_svg(path, (800, 284), parts, title=title, lang=lang)


DRAWINGS = {
    "bilm": draw_bilm,
    "mix": draw_mix,
    "joined": draw_joined,
    "where": draw_where,
}
