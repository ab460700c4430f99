"""Tokenize chunks of text and divide them into sentences, in several processes."""

import os
import re
import signal
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from typing import NamedTuple

import numpy as np
from spacy.attrs import IS_SPACE, ORTH, SENT_START
from spacy.language import Language
from spacy.tokens import Doc

from .chunks import Chunk, is_held_out
from .doc_files import load_docs
from .sentence_starts import find_sentence_starts
from .tokenizers import Tokenization

FEW_CHUNKS = 16
LINE_ENDS = re.compile("[\\r\\n]")  # not allowed in words: a file has one per line


class WordStream(NamedTuple):
    """A text as numbers: one for each word, from 1 on, and 0 before each sentence.

    tokens (np.ndarray): The numbers, int32, (n_tokens,).
    documents (np.ndarray): The indices of the tokens that begin a document,
        (n_documents,).
    paragraphs (np.ndarray): The indices of the tokens that begin a paragraph,
        (n_paragraphs,).
    """

    tokens: np.ndarray
    documents: np.ndarray
    paragraphs: np.ndarray


class TokenizedChunk(NamedTuple):
    """A chunk after tokenization.

    words (list[str]): The distinct words. Word number n is words[n - 1].
    streams (tuple[WordStream, WordStream]): The text to train on, and the text that is
        held out.
    """

    words: list[str]
    streams: tuple[WordStream, WordStream]


# The pipeline that this process used last, since loading one takes time.
_loaded: tuple[Tokenization, Language] | None = None


def tokenize_chunk(
    tokenization: Tokenization, share: float, chunk: Chunk
) -> TokenizedChunk:
    """Tokenize a chunk and divide it into sentences.

    tokenization (Tokenization): How the text is divided into words.
    share (float): The share of the docs of a .spacy file to hold out. A chunk of
        paragraphs already says which ones are held out.
    """
    global _loaded
    if _loaded is None or _loaded[0] != tokenization:
        _loaded = (tokenization, tokenization.load())
    nlp = _loaded[1]
    arrays: list[list[np.ndarray]] = [[], []]
    starts: list[list[tuple[int, bool]]] = [[], []]
    lengths = [0, 0]
    for doc, begins, held_out in _make_docs(nlp, tokenization, share, chunk):
        orths = _divide_sentences(doc, tokenization.tokenized)
        if len(orths):
            starts[held_out].append((lengths[held_out], begins))
            arrays[held_out].append(orths)
            lengths[held_out] += len(orths)
    joined = [np.concatenate([np.zeros(0, np.uint64), *parts]) for parts in arrays]
    orths, numbers = np.unique(np.concatenate(joined), return_inverse=True)
    numbers = numbers.astype(np.int32)
    if not len(orths) or orths[0] != 0:
        numbers += 1  # without any sentence, 0 is missing, but it stays reserved
        orths = np.concatenate([np.zeros(1, np.uint64), orths])
    strings = nlp.vocab.strings
    words = [LINE_ENDS.sub(" ", strings[int(orth)]) for orth in orths[1:]]
    train = _make_stream(numbers[: lengths[0]], starts[0])
    held_out_stream = _make_stream(numbers[lengths[0] :], starts[1])
    return TokenizedChunk(words, (train, held_out_stream))


def _make_stream(tokens: np.ndarray, starts: list[tuple[int, bool]]) -> WordStream:
    """Make a stream.

    tokens (np.ndarray): Numbers of words, with 0 before each sentence, (n_tokens,).
    starts (list[tuple[int, bool]]): The index of the first token of each paragraph, and
        whether a document begins there too.
    """
    documents = np.array([at for at, begins in starts if begins], dtype=np.int64)
    paragraphs = np.array([at for at, _ in starts], dtype=np.int64)
    return WordStream(tokens, documents, paragraphs)


def _make_docs(
    nlp: Language, tokenization: Tokenization, share: float, chunk: Chunk
) -> Iterator[tuple[Doc, bool, bool]]:
    """Tokenize each paragraph of a chunk, or load the docs of its .spacy file.

    YIELDS (tuple[Doc, bool, bool]): A doc, whether a document begins with it, and
        whether it is held out.
    """
    if chunk.path is not None:
        for doc in load_docs(chunk.path, nlp.vocab):
            yield doc, True, is_held_out(doc[:100].text, share)
        return
    for text, begins, held_out in zip(chunk.paragraphs, chunk.starts, chunk.held_out):
        if tokenization.tokenized:
            doc = Doc(nlp.vocab, words=text.split())
        else:
            doc = nlp.tokenizer(text)
        yield doc, begins, held_out


def _divide_sentences(doc: Doc, one_sentence: bool) -> np.ndarray:
    """Return the orths of the words of a doc without space tokens, and 0 before each
    sentence, (n_tokens,).

    one_sentence (bool): Whether the whole doc is one sentence.
    """
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
        begins = find_sentence_starts(doc)
    # A sentence that begins with a space token begins with the word after it.
    starts = np.unique(np.append(0, (np.cumsum(kept) - kept)[begins]))
    return np.insert(orths, starts[starts < len(orths)], 0)


def tokenize_chunks(
    tokenization: Tokenization, share: float, chunks: Iterator[Chunk], n_process: int
) -> Iterator[TokenizedChunk]:
    """Tokenize chunks in several processes.

    YIELDS (TokenizedChunk): The tokenized chunks, in the order of `chunks`.
    """
    # A text of a few megabytes is tokenized before other processes have started.
    first = list(islice(chunks, FEW_CHUNKS))
    if n_process <= 1 or len(first) < FEW_CHUNKS:
        for chunk in chain(first, chunks):
            yield tokenize_chunk(tokenization, share, chunk)
        return
    chunks = chain(first, chunks)
    # Processes are spawned, because it is not safe to fork while torch has threads.
    with ProcessPoolExecutor(
        n_process,
        mp_context=get_context("spawn"),
        initializer=_start_worker,
    ) as pool:
        try:
            yield from _tokenize_in_order(
                pool, tokenization, share, chunks, ahead=2 * n_process
            )
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _start_worker() -> None:
    """Prepare a process that tokenizes: ignore Ctrl-C, because the parent handles it,
    and end when the parent ends, even if that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _tokenize_in_order(
    pool: Executor,
    tokenization: Tokenization,
    share: float,
    chunks: Iterator[Chunk],
    *,
    ahead: int,
) -> Iterator[TokenizedChunk]:
    """Tokenize chunks in a pool and yield them in order. At most `ahead` chunks are
    tokenized before they are needed, to save memory."""
    waiting: deque[Future[TokenizedChunk]] = deque()
    for chunk in chunks:
        waiting.append(pool.submit(tokenize_chunk, tokenization, share, chunk))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
