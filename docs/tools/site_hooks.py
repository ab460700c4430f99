"""Adapt the pages of docs/ to the site, as mkdocs reads them.

On GitHub, a page links to its translation and to files outside of docs/. The site has a
menu for languages, and no such files.
"""

import re
from typing import Any

SOURCE = "https://github.com/spacy-elmo/spacy-elmo/blob/main/"
TRANSLATION = re.compile(r"^(?:한국어|English): \[[\w.]+\]\([\w.]+\)\n\n?", re.M)
CODE_IN_TABLE = re.compile(r"^\| `[^`\n]*`", re.M)


def on_page_markdown(markdown: str, **context: Any) -> str:
    """Return the text of a page with the links of the site."""
    markdown = TRANSLATION.sub("", markdown, count=1)
    markdown = re.sub(r"\]\(\.\./", f"]({SOURCE}", markdown)
    # In a table, GitHub wants `a\|b`, where mkdocs would show the backslash.
    markdown = CODE_IN_TABLE.sub(lambda row: row[0].replace("\\|", "|"), markdown)
    # In each language, a link to page.md leads to the translation of that page.
    return re.sub(r"\]\((images/\w+|\w+)\.ko\.(md|svg)", r"](\1.\2", markdown)
