"""Draw how ELMo works: the biLM, the mix, [x_k ; ELMo_k], and where ELMo joins."""

from pathlib import Path

from markupsafe import Markup
from svg import arrow, box, element, lines, save_svg, text

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
    return tall_label(x, y, (width, 34), [words], color)


def tall_label(
    x: float, y: float, size: tuple[float, float], words: list[str], color: str
) -> Markup:
    """Draw a box with lines of text in its middle."""
    width, height = size
    top = y + height / 2 + 5 - 10 * (len(words) - 1)
    middle = lines(x + width / 2, top, words, "middle")
    return box(x, y, width, height, color) + Markup("").join(middle)


def draw_bilm(path: Path, lang: str) -> None:
    """Draw both directions of the biLM over a sentence."""
    en = lang == "en"
    names = {
        BLUE: ["forward: guesses", "the next word"]
        if en
        else ["앞에서부터 읽으며", "다음 단어 예측"],
        ORANGE: ["backward: guesses", "the previous word"]
        if en
        else ["뒤에서부터 읽으며", "앞 단어 예측"],
    }
    words = SENTENCE[lang]
    targets = {BLUE: [*words[1:], "⟨/S⟩"], ORANGE: ["⟨S⟩", *words[:-1]]}
    parts = []
    for side, color in enumerate((BLUE, ORANGE)):
        left = 6 + side * 218
        parts += lines(left, 30, names[color], "strong")
        for k, word in enumerate(words):
            x, middle = left + k * 73, left + k * 73 + 32
            parts.append(text(middle, 84, targets[color][k], "middle strong"))
            parts.append(arrow((middle, 114), (middle, 92)))
            parts.append(label(x, 114, 64, "softmax", GRAY))
            for row in range(2):
                y = 182 + row * 68
                parts.append(arrow((middle, y), (middle, y - 34)))
                parts.append(label(x, y, 64, f"LSTM {2 - row}", color))
                if k < len(words) - 1:
                    ends = [(x + 64, y + 17), (x + 73, y + 17)]
                    parts.append(arrow(*(ends if color == BLUE else ends[::-1])))
            parts.append(arrow((middle, 318), (middle, 284)))
            parts.append(label(x, 318, 64, f"x_{k + 1}", GREEN))
            parts.append(arrow((middle, 376), (middle, 352)))
            parts.append(text(middle, 394, word, "middle"))
    note = (
        ["A CNN makes x_k from the bytes of a word;", "both directions share it."]
        if en
        else ["x_k는 단어의 바이트에서 CNN으로 만들며,", "두 방향이 함께 씁니다."]
    )
    parts += lines(12, 430, note, "soft")
    title = (
        "The biLM: two LSTM layers in each direction"
        if en
        else "biLM: 방향마다 LSTM 두 층"
    )
    save_svg(path, 466, parts, title=title, lang=lang)


def draw_mix(path: Path, lang: str) -> None:
    """Draw how a task mixes the layers of a word."""
    en = lang == "en"
    rows = [
        ("h(k,2)", "LSTM 2", "s_2", PINK, 0.6),
        ("h(k,1)", "LSTM 1", "s_1", BLUE, 0.3),
        ("h(k,0)", "[x_k ; x_k]", "s_0", GREEN, 0.1),
    ]
    what = ["meaning", "grammar", "spelling"] if en else ["의미", "문법", "철자"]
    head = (
        ["Each task learns the scale γ and", "the shares s_0 + s_1 + s_2 = 1"]
        if en
        else ["비율 s_0 + s_1 + s_2 = 1과 배율 γ를", "과제마다 학습합니다"]
    )
    parts = lines(16, 30, head, "strong")
    for row, (name, source, share, color, size) in enumerate(rows):
        y = 76 + row * 72
        parts.append(tall_label(16, y, (156, 40), [f"{name} = {source}"], color))
        parts.append(text(94, y + 58, what[row], "soft middle"))
        parts.append(arrow((172, y + 20), (232, y + 20)))
        parts.append(text(202, y + 12, f"× {share}", "middle strong"))
        bar = element(
            "rect",
            x=238,
            y=y + 10,
            width=float(130 * size),
            height=20,
            rx=3,
            fill=f"var(--{color})",
        )
        parts.append(bar)
        parts.append(arrow((328, y + 20), (376, y + 20)))
    parts.append(tall_label(376, 76, (48, 184), ["+"], GRAY))
    parts.append(arrow((400, 260), (400, 320), (320, 320)))
    parts.append(text(360, 310, "× γ", "middle strong"))
    parts.append(tall_label(200, 296, (120, 48), ["ELMo_k"], ORANGE))
    title = "The mix of three layers" if en else "세 층의 믹스"
    save_svg(path, 360, parts, title=title, lang=lang)


def draw_joined(path: Path, lang: str) -> None:
    """Draw two vectors one after the other."""
    en = lang == "en"
    own = ["x_k of spaCy,", "96 numbers"] if en else ["x_k: spaCy", "임베딩, 96개"]
    added = (
        ["ELMo_k: from the whole sentence,", "384 numbers"]
        if en
        else ["ELMo_k: 문장 전체에서 계산,", "384개"]
    )
    parts = [
        *lines(16, 30, own, "soft"),
        *lines(156, 30, added, "soft"),
        *draw_numbers(16, 8, GREEN),
        *draw_numbers(156, 24, ORANGE),
        element("path", d="M16 106v10H424v-10", class_="arrow"),
        text(220, 142, "[x_k ; ELMo_k]", "title middle"),
    ]
    title = "[x_k ; ELMo_k]"
    save_svg(path, 160, parts, title=title, lang=lang)


def draw_numbers(x: float, count: int, color: str) -> list[Markup]:
    """Draw a vector as a row of squares of different shades."""
    return [
        element(
            "rect",
            x=float(x + n * 11.25),
            y=64,
            width=9,
            height=32,
            rx=2,
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
    elmo = (
        ["elmo:", "one frozen", "biLM for all", "components"]
        if en
        else ["elmo:", "모든", "컴포넌트가", "함께 쓰는", "고정된 biLM"]
    )
    parts = []
    for step, name in enumerate(steps):
        y = 16 + step * 136
        color = (GREEN, BLUE, GRAY)[step]
        parts.append(tall_label(16, y, (176, 46), [name], color))
        if step < 2:
            joint = y + 92
            parts.append(arrow((70, y + 46), (70, y + 136)))
            parts.append(text(60, joint, ["x_k", "h_k"][step], "end"))
            parts.append(arrow((236, joint), (74, joint)))
            parts.append(text(154, joint - 10, f"ELMo_k ({step + 1})", "middle"))
            where = ("where = “input”", "where = “output”")[step]
            parts.append(text(154, joint + 22, where, "soft middle"))
            mix = f"{'mix' if en else '믹스'} {step + 1}"
            parts.append(label(236, joint - 17, 62, mix, ORANGE))
            parts.append(arrow((328, joint), (298, joint)))
    parts.append(tall_label(328, 16, (96, 318), elmo, PINK))
    title = "Where ELMo joins a component" if en else "컴포넌트에 ELMo가 붙는 곳"
    save_svg(path, 350, parts, title=title, lang=lang)


DRAWINGS = {
    "bilm": draw_bilm,
    "mix": draw_mix,
    "joined": draw_joined,
    "where": draw_where,
}
