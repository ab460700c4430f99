"""Paragraphs to sentences of words, in as many processes as wanted."""

import re
import signal
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from hashlib import blake2b
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import (
    Any,
    NamedTuple,
)

import numpy as np
from spacy.attrs import IS_SPACE, ORTH, SENT_START
from spacy.language import Language
from spacy.tokens import Doc

from .doc_files import load_docs
from .paragraphs import BLOCK, has_documents, read_parts
from .sentence_starts import find_starts
from .text_files import kind_of
from .tokenizers import Tokenization

CHUNK_CHARACTERS = 2**19
FEW_CHUNKS = 16
LINE_ENDS = re.compile("[\\r\\n]")  # a vocabulary has a word a line
PARAGRAPHS = 20  # that stand for a document where a text does not show any


class Chunk(NamedTuple):
    """Paragraphs to be worked on together, or the path of a .spacy file.

    starts: For each paragraph, whether a document begins with it.
    held_out: For each paragraph, whether its document is held out.
    """

    paragraphs: list[str]
    starts: list[bool]
    held_out: list[bool]
    path: Path | None = None


class Words(NamedTuple):
    """What became of a chunk: distinct words, and for each of two parts, the text to
    train on and the text held out, a stream (n,) of numbers of words, counted from 1,
    with 0 before each sentence, and the places in it where a document or a paragraph
    begins."""

    words: list[str]
    streams: tuple[np.ndarray, np.ndarray]
    documents: tuple[np.ndarray, np.ndarray]
    paragraphs: tuple[np.ndarray, np.ndarray]


def is_held_out(text: str, share: float) -> bool:
    """By the text alone, so that the same document is always on the same side."""
    number = int.from_bytes(
        blake2b(text.encode("utf-8", "replace")).digest()[:8], "big"
    )
    return number < share * 2**64


def make_chunks(
    files: Sequence[Path], share: float, troubles: "Counter[str]"
) -> Iterator[Chunk]:
    """share (float): Of the documents, to be held out. In a text without empty lines,
    a few paragraphs count as one."""
    chunk = Chunk([], [], [])
    size = 0
    for path in files:
        if kind_of(path) == ".spacy":
            yield Chunk([], [], [], path)
            continue
        begins, held_out, n_paragraphs = True, False, 0
        endless = share > 0 and is_endless(path, len(files) == 1)
        for part in read_parts(path, troubles):
            for paragraph in part.paragraphs:
                begins = begins or (endless and n_paragraphs % PARAGRAPHS == 0)
                n_paragraphs += 1
                if begins:
                    held_out = is_held_out(paragraph, share)
                chunk.paragraphs.append(paragraph)
                chunk.starts.append(begins)
                chunk.held_out.append(held_out)
                begins = False
                size += len(paragraph)
            begins = begins or part.ends
            if size > CHUNK_CHARACTERS:
                yield chunk
                chunk, size = Chunk([], [], []), 0
    if chunk.paragraphs:
        yield chunk


def is_endless(path: Path, only: bool) -> bool:
    """Whether a file is long, or the only one, and does not show its documents."""
    long = only or path.stat().st_size > BLOCK
    return long and kind_of(path) != ".jsonl" and not has_documents(path)


_loaded: tuple[Tokenization | None, Any] = (None, None)


def split_chunk(tokenization: Tokenization, share: float, chunk: Chunk) -> Words:
    """Tokenise a chunk and cut it into sentences."""
    global _loaded
    if _loaded[0] != tokenization:
        _loaded = (tokenization, tokenization.load())
    nlp: Language = _loaded[1]
    arrays: list[list[np.ndarray]] = [[], []]
    places: list[list[tuple[int, bool]]] = [[], []]
    lengths = [0, 0]
    for doc, begins, held_out in _docs(nlp, tokenization, share, chunk):
        stream = _stream(doc, tokenization.tokenized)
        if len(stream):
            places[held_out].append((lengths[held_out], begins))
            arrays[held_out].append(stream)
            lengths[held_out] += len(stream)
    joined = [np.concatenate([np.zeros(0, np.uint64), *parts]) for parts in arrays]
    orths, numbers = np.unique(np.concatenate(joined), return_inverse=True)
    numbers = numbers.astype(np.int32)
    if not len(orths) or orths[0] != 0:
        numbers += 1  # no sentence at all: keep 0 for boundaries
        orths = np.concatenate([np.zeros(1, np.uint64), orths])
    strings = nlp.vocab.strings
    words = [LINE_ENDS.sub(" ", strings[int(orth)]) for orth in orths[1:]]
    streams = (numbers[: lengths[0]], numbers[lengths[0] :])
    documents, paragraphs = (
        tuple(
            np.array([at for at, first in part if first or not only], dtype=np.int64)
            for part in places
        )
        for only in (True, False)
    )
    return Words(words, streams, documents, paragraphs)  # type: ignore[arg-type]


def _docs(
    nlp: Language, tokenization: Tokenization, share: float, chunk: Chunk
) -> Iterator[tuple[Doc, bool, bool]]:
    """YIELDS: A paragraph, whether a document begins with it, and is held out."""
    if chunk.path is not None:
        for doc in load_docs(chunk.path, nlp.vocab):
            yield doc, True, is_held_out(doc[:100].text, share)
        return
    for text, begins, held_out in zip(*chunk[:3]):
        if tokenization.tokenized:
            doc = Doc(nlp.vocab, words=text.split())
        else:
            doc = nlp.tokenizer(text)
        yield doc, begins, held_out


def _stream(doc: Doc, one_sentence: bool) -> np.ndarray:
    """RETURNS (np.ndarray): The orths of words, with 0 before each sentence."""
    array = doc.to_array([ORTH, IS_SPACE, SENT_START])
    kept = array[:, 1] == 0
    orths = array[kept, 0]
    if not len(orths):
        return orths
    if one_sentence:
        begins = np.zeros(1, dtype=np.int64)
    elif doc.has_annotation("SENT_START"):
        begins = np.flatnonzero(array[:, 2] == 1)
    else:
        begins = find_starts(doc)
    # A sentence that begins with space begins with the word after it.
    starts = np.unique(np.append(0, (np.cumsum(kept) - kept)[begins]))
    return np.insert(orths, starts[starts < len(orths)], 0)


def split_all(
    tokenization: Tokenization, share: float, chunks: Iterator[Chunk], n_process: int
) -> Iterator[Words]:
    """split_chunk for all chunks, in order, a few of them at a time."""
    # A text of a few megabytes is done before a process has started.
    first = list(islice(chunks, FEW_CHUNKS))
    if n_process <= 1 or len(first) < FEW_CHUNKS:
        for chunk in chain(first, chunks):
            yield split_chunk(tokenization, share, chunk)
        return
    chunks = chain(first, chunks)
    # Started afresh: a copy of this process would carry torch's threads along.
    # Ctrl-C reaches them too: this process deals with it.
    with ProcessPoolExecutor(
        n_process,
        mp_context=get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as pool:
        try:
            yield from _in_order(pool, tokenization, share, chunks, 2 * n_process)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _in_order(
    pool: Executor,
    tokenization: Tokenization,
    share: float,
    chunks: Iterator[Chunk],
    ahead: int,
) -> Iterator[Words]:
    waiting: deque[Future[Words]] = deque()
    for chunk in chunks:
        waiting.append(pool.submit(split_chunk, tokenization, share, chunk))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
