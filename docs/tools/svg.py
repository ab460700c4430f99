"""Write SVG files that are readable on light and on dark pages.

Each file has a background of its own and the colours of the report, light or dark as
the reader's system prefers, and needs neither fonts nor scripts from elsewhere. It is
narrow, so that its text stays readable on a phone.
"""

import re
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from spacy_elmo.report.charts.base import FONT

STYLE = """
text {{ font-family: {font}; font-size: 15px; fill: var(--ink) }}
.card {{ fill: var(--card); stroke: var(--line) }}
.title {{ font-size: 17px; font-weight: 600 }}
.soft {{ fill: var(--soft) }}
.strong {{ font-weight: 700 }}
.middle {{ text-anchor: middle }}
.end {{ text-anchor: end }}
.line {{ fill: none; stroke: var(--line) }}
.arrow {{ fill: none; stroke: var(--soft); stroke-width: 1.5 }}
.head {{ fill: var(--soft) }}
.number {{ fill: var(--on-series); text-anchor: middle }}
"""
WIDTH = 440
# On a wide page, the text is as large as that around the picture.
ENLARGED = 1.07
# Round, so that the last bits of a computation change no file.
DIGITS = 1


def place(value: float) -> str:
    """Write a coordinate."""
    return f"{round(value, DIGITS) + 0.0:g}"


def element(name: str, content: object = "", **attributes: object) -> Markup:
    """Make an element. Names of attributes may have "_" for "-" and at the end."""
    parts = [Markup("<{}").format(name)]
    for key, value in attributes.items():
        written = place(value) if isinstance(value, float) else value
        key = key.rstrip("_").replace("_", "-")
        parts.append(Markup(' {}="{}"').format(key, written))
    parts.append(Markup(">{}</{}>").format(content, name))
    return Markup("").join(parts)


def text(x: float, y: float, content: object, classes: str = "") -> Markup:
    attributes = {"class": classes} if classes else {}
    return element("text", content, x=float(x), y=float(y), **attributes)


def lines(x: float, y: float, content: list[str], classes: str = "") -> list[Markup]:
    """Write lines of text below each other."""
    return [text(x, y + 20 * n, line, classes) for n, line in enumerate(content)]


def box(x: float, y: float, width: float, height: float, color: str) -> Markup:
    """Draw a box with round corners in a light shade of a colour.

    color (str): A variable of the colours, without the hyphens: "series-1".
    """
    return element(
        "rect",
        x=float(x),
        y=float(y),
        width=float(width),
        height=float(height),
        rx=6,
        fill=f"var(--{color})",
        fill_opacity=0.16,
        stroke=f"var(--{color})",
    )


def arrow(*points: tuple[float, float]) -> Markup:
    """Draw a line through points with an arrow head at its end, which must be reached
    vertically or horizontally."""
    (x0, y0), (x, y) = points[-2:]
    dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
    path = "M" + "L".join(f"{place(a)} {place(b)}" for a, b in points)
    head = [
        (x, y),
        (x - 8 * dx - 4 * dy, y - 8 * dy - 4 * dx),
        (x - 8 * dx + 4 * dy, y - 8 * dy + 4 * dx),
    ]
    corners = " ".join(f"{place(a)},{place(b)}" for a, b in head)
    return element("path", d=path, class_="arrow") + element(
        "polygon", points=corners, class_="head"
    )


def read_colors() -> str:
    """Return the light and the dark colours of the report as a style sheet."""
    path = files("spacy_elmo").joinpath("report/templates/colors.css")
    light, dark = path.read_text("utf-8").split("@media (prefers-color-scheme: dark)")
    rules = [
        f":root {{ {' '.join(re.findall(r'--[a-z0-9-]+: #[0-9a-f]+;', part))} }}"
        for part in (light, dark)
    ]
    return f"{rules[0]}\n@media (prefers-color-scheme: dark) {{ {rules[1]} }}"


def save_svg(
    path: Path, height: int, parts: list[Markup], *, title: str, lang: str
) -> None:
    """Write a picture to a file.

    title (str): What it shows, for people who cannot see it.
    """
    style = read_colors() + STYLE.format(font=FONT)
    card = element(
        "rect",
        x=0.5,
        y=0.5,
        width=float(WIDTH - 1),
        height=float(height - 1),
        rx=8,
        class_="card",
    )
    body = Markup("\n").join(
        [
            element("title", title),
            element("style", Markup(style.replace("<", ""))),
            card,
            *parts,
        ]
    )
    svg = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" '
        'height="{}" role="img" lang="{}">\n{}\n</svg>\n'
    ).format(
        WIDTH, height, round(WIDTH * ENLARGED), round(height * ENLARGED), lang, body
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(svg), "utf-8", newline="\n")
