"""Divide texts into chunks that processes can tokenize independently, and choose the
documents to hold out for evaluation."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from .encodings import UTF8, check_encoding
from .line_check import LineCheck
from .paragraphs import BLOCK, RECORDS, has_documents, load_paragraphs
from .problems import Problems
from .text_files import kind_of

CHUNK_CHARACTERS = 2**19
DOCUMENT_PARAGRAPHS = 20  # per document, if a text does not mark its documents


class Chunk(NamedTuple):
    """A unit of work for the tokenizer: some paragraphs, or a .spacy file.

    paragraphs (list[str]): The paragraphs.
    starts (list[bool]): For each paragraph, whether a document begins with it.
    held_out (list[bool]): For each paragraph, whether its document is held out.
    path (Path | None): The .spacy file, if the chunk has no paragraphs.
    """

    paragraphs: list[str]
    starts: list[bool]
    held_out: list[bool]
    path: Path | None = None


def is_held_out(text: str, share: float) -> bool:
    """Return whether to hold out a document.

    The answer depends only on the arguments, so the same documents are held out every
    time.

    text (str): The beginning of the document.
    share (float): The share of documents to hold out.
    """
    number = int.from_bytes(
        blake2b(text.encode("utf-8", "replace")).digest()[:8], "big"
    )
    return number < share * 2**64


def make_chunks(
    files: Sequence[Path], share: float, problems: Problems, encoding: str = UTF8
) -> Iterator[Chunk]:
    """Divide files into chunks.

    files (Sequence[Path]): The text files.
    share (float): The share of documents to hold out. In a text without empty lines,
        every DOCUMENT_PARAGRAPHS paragraphs count as a document.
    problems (Problems): Counts the problems that are found in the text.
    encoding (str): The encoding of the text. If more than a tenth of the lines of a
        file, or of all files together, cannot be read, a ValueError names the encoding
        that would fit.
    YIELDS (Chunk): Paragraphs with about CHUNK_CHARACTERS characters, or one .spacy
        file.
    """
    check_encoding(encoding)
    check = LineCheck(encoding)
    chunk = Chunk([], [], [])
    size = 0
    for path in files:
        if kind_of(path) == ".spacy":
            yield Chunk([], [], [], path)
            continue
        begins, held_out, n_paragraphs = True, False, 0
        divide = share > 0 and _hides_documents(path, encoding, len(files))
        for part in load_paragraphs(path, problems, check):
            for paragraph in part.paragraphs:
                begins = begins or (divide and n_paragraphs % DOCUMENT_PARAGRAPHS == 0)
                n_paragraphs += 1
                if begins:
                    held_out = is_held_out(paragraph, share)
                chunk.paragraphs.append(paragraph)
                chunk.starts.append(begins)
                chunk.held_out.append(held_out)
                begins = False
                size += len(paragraph)
            begins = begins or part.ends_document
            if size > CHUNK_CHARACTERS:
                yield chunk
                chunk, size = Chunk([], [], []), 0
    check.check_all()
    if chunk.paragraphs:
        yield chunk


def _hides_documents(path: Path, encoding: str, n_files: int) -> bool:
    """Return whether a file does not show where its documents begin, and is too long to
    count as one document. If it is the only file, any length is too long.

    n_files (int): The number of all files.
    """
    long = n_files == 1 or path.stat().st_size > BLOCK
    return long and kind_of(path) not in RECORDS and not has_documents(path, encoding)
