"""Load sentences for the benchmarks from CoNLL-U or plain text."""

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path


def read_sentences(
    path: Path, *, count: int, min_length: int, max_length: int
) -> list[list[str]]:
    """Take the first sentences of a file that have a fitting number of tokens.

    path (Path): CoNLL-U (recognized by its suffix `.conllu`), or text with one
        sentence per line and tokens separated by whitespace.
    count (int): How many sentences to take.
    min_length (int): Shortest sentence taken, in tokens.
    max_length (int): Longest sentence taken, in tokens.
    RETURNS (list[list[str]]): At most `count` sentences, in the order of the file.
    """
    read = _read_conllu if path.suffix == ".conllu" else _read_plain
    sentences: list[list[str]] = []
    for sentence in read(path):
        if len(sentences) == count:
            break
        if min_length <= len(sentence) <= max_length:
            sentences.append(sentence)
    if not sentences:
        raise ValueError(
            f"{path} has no sentence of {min_length} to {max_length} tokens; change "
            "--min-length and --max-length or give another --text"
        )
    return sentences


def write_sentences(args: Namespace) -> tuple[list[list[str]], Path]:
    """Read the sentences that the options of a benchmark choose, and write them to a
    file in args.workdir for the workers.

    RETURNS (tuple[list[list[str]], Path]): The sentences, and the JSON file.
    """
    args.workdir.mkdir(parents=True, exist_ok=True)
    sentences = read_sentences(
        args.text,
        count=args.sentences,
        min_length=args.min_length,
        max_length=args.max_length,
    )
    path = args.workdir / "sentences.json"
    path.write_text(json.dumps(sentences), "utf8")
    return sentences, path


def _read_plain(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf8") as lines:
        for line in lines:
            yield line.split()


def read_tagged(path: Path, *, count: int) -> list[tuple[list[str], list[str]]]:
    """Load the first sentences of a CoNLL-U file as pairs (words, universal tags)."""
    sentences = []
    for rows in _read_rows(path):
        if len(sentences) == count:
            break
        sentences.append(([row[1] for row in rows], [row[3] for row in rows]))
    return sentences


def _read_conllu(path: Path) -> Iterator[list[str]]:
    for rows in _read_rows(path):
        yield [row[1] for row in rows]


def _read_rows(path: Path) -> Iterator[list[list[str]]]:
    """Yield the words of each sentence as lists of columns. Skip ranges (`3-4`) and
    empty nodes (`5.1`)."""
    rows: list[list[str]] = []
    with path.open(encoding="utf8") as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t")
            if columns[0].isdigit():
                rows.append(columns)
            elif not line.strip() and rows:
                yield rows
                rows = []
    if rows:
        yield rows
