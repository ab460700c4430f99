"""Write the text for the demo of pretraining. It consists of a given text file and of
the prose in the documentation that every CPython contains.

Run as `python -m spacy_elmo.project.demo_text FILE OUT`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MIN_WORDS = 8
MIN_SHARE = 0.75  # this share of a paragraph's words must look like plain words


def python_documents() -> Iterator[list[str]]:
    """Yield the paragraphs of each topic of Python's documentation."""
    from pydoc_data.topics import topics

    for name in sorted(topics):
        blocks = re.split(r"\n\s*\n", topics[name])
        paragraphs = [" ".join(block.split()) for block in blocks]
        paragraphs = [text for text in paragraphs if is_prose(text)]
        if paragraphs:
            yield paragraphs


def is_prose(text: str) -> bool:
    """Return whether a block consists of sentences, and is not code, a grammar, a table
    or a title."""
    words = text.split()
    if len(words) < MIN_WORDS or text[-1] not in ".!?:":
        return False
    plain = [word for word in words if re.fullmatch(r"[(]?[^\W\d_]+[-’'\w]*\W?", word)]
    return len(plain) >= MIN_SHARE * len(words)


def main(source: Path, out: Path) -> None:
    documents = [block for block in source.read_text("utf8").split("\n\n") if block]
    documents += ["\n".join(paragraphs) for paragraphs in python_documents()]
    out.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(document.strip() for document in documents)
    out.write_text(text + "\n", encoding="utf8")
    n_words = len(text.split())
    print(f"Wrote {n_words:,} words in {len(documents)} documents to {out}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("expected two arguments: a text, and the file to write")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
