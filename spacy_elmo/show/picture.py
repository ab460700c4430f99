"""A picture: a piece of HTML for a notebook, or a page in a file."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from ..files import write_atomically

CLASS = "spacy-elmo-picture"
PAGE = Markup(
    '<!DOCTYPE html>\n<html lang="{lang}">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    '<meta name="color-scheme" content="light dark">\n<title>{title}</title>\n'
    "<style>body {{ margin: 0; background: Canvas }}</style>\n</head>\n"
    "<body>\n{picture}\n</body>\n</html>\n"
)


class Picture:
    """A picture that notebooks show, in the light or dark colours of the reader. It
    needs no network and no script.

    title (str): What it shows.
    body (Markup): Its HTML, in which all text is escaped.
    lang (str): The language of the text in it.
    """

    def __init__(self, title: str, body: Markup, lang: str = "en") -> None:
        self.title = title
        self.body = body
        self.lang = lang

    def __repr__(self) -> str:
        return f"<Picture: {self.title}>"

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        figure = '<figure class="{}" lang="{}"><figcaption>{}</figcaption>\n{}</figure>'
        content = (CLASS, self.lang, self.title, self.body)
        style = Markup("<style>\n{}</style>\n").format(read_style())
        return str(style + Markup(figure).format(*content))

    def save(self, path: str | Path) -> None:
        """Write the picture to a file, as a page that a browser can open.

        path (str | Path): The file, which usually ends in .html.
        """
        picture = Markup(self._repr_html_())
        page = PAGE.format(lang=self.lang, title=self.title, picture=picture)
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda part: part.write_text(page, encoding="utf-8"))


@cache
def read_style() -> Markup:
    """Return the style sheet of a picture: the colours of the report, and our rules.
    They apply to pictures only, not to the page around them."""
    package = files("spacy_elmo")
    colors = package.joinpath("report/templates/colors.css").read_text("utf-8")
    rules = package.joinpath("show/picture.css").read_text("utf-8")
    text = colors.replace(":root", f".{CLASS}") + rules.replace(".picture", f".{CLASS}")
    return Markup(text)
