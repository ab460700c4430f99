"""Tokenize a text and write the files of its corpus, in one or several processes."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..text.chunks import Chunk, make_chunks
from ..text.problems import Problems
from ..text.tokenized_chunks import TokenizedChunk, tokenize_chunks
from ..text.tokenizers import Tokenization
from .chunk_files import load_chunks, save_chunks, take_turns
from .corpus_writer import DEV, PARTS, TRAIN, CorpusWriter
from .processes import Processes

FEWEST = 1e-30  # a share for which one document is held out, if there are several


class TextToPrepare(NamedTuple):
    """A text that becomes a corpus.

    files (tuple[list[Path], list[Path]]): The files to train on and to evaluate on.
    tokenization (Tokenization): How the text is divided into words.
    n_process (int): Processes that tokenize, for each process that calls the methods.
    """

    files: tuple[list[Path], list[Path]]
    tokenization: Tokenization
    n_process: int

    def tokenize_together(
        self, folder: Path, share: float, ranks: Processes, problems: Problems
    ) -> None:
        """Let each process tokenize its share of the text, for the first one to write.

        folder (Path): A folder that all processes see.
        share (float): The share of documents to hold out.
        ranks (Processes): The processes. Each reads the whole text, because that shows
            where its parts begin, but tokenizing takes far more time.
        problems (Problems): Counts the problems of the text.
        """
        digest = blake2b(digest_size=16)

        def each_nth(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
            def read() -> Iterator[Chunk]:
                for chunk in chunks:
                    for paragraph in chunk.paragraphs:
                        digest.update(paragraph.encode("utf8", "replace") + b"\n")
                    yield chunk

            return islice(read(), ranks.rank, None, ranks.size)

        with ranks.together():
            for part in (TRAIN, DEV):
                own_share = share if part == TRAIN else 0.0
                chunks = each_nth(self._divide(part, own_share, problems))
                save_chunks(
                    tokenize_chunks(
                        self.tokenization, own_share, chunks, self.n_process
                    ),
                    _share_path(folder, part, ranks.rank),
                )
        ranks.check_same({"fingerprint of the text": digest.hexdigest()})

    def write(
        self, folder: Path, share: float, ranks: Processes, problems: Problems
    ) -> dict[str, Any]:
        """Write the files of a corpus. Several processes must have called
        tokenize_together before; only the first of them calls this.

        RETURNS (dict[str, Any]): The facts about the corpus.
        """

        def tokenized(part: int) -> Iterator[TokenizedChunk]:
            if ranks.size > 1:
                paths = [_share_path(folder, part, n) for n in range(ranks.size)]
                return take_turns([load_chunks(path) for path in paths])
            own_share = share if part == TRAIN else 0.0
            chunks = self._divide(part, own_share, problems)
            return tokenize_chunks(self.tokenization, own_share, chunks, self.n_process)

        with CorpusWriter(folder) as writer:
            for chunk in tokenized(TRAIN):
                for part, stream in enumerate(chunk.streams):
                    writer.add(chunk.words, stream, part)
            for chunk in tokenized(DEV):
                writer.add(chunk.words, chunk.streams[TRAIN], DEV)
            if share:
                writer.hold_out_one(share)
            meta = writer.finish()
        if meta["dev"]["n_words"] and not meta["train"]["n_words"] and share > FEWEST:
            problems.clear()  # all documents were held out
            return self.write(folder, FEWEST, Processes(), problems)
        return {**meta, "problems": dict(problems)}

    def _divide(self, part: int, share: float, problems: Problems) -> Iterator[Chunk]:
        encoding = self.tokenization.encoding
        return make_chunks(self.files[part], share, problems, encoding)


def _share_path(folder: Path, part: int, rank: int) -> Path:
    return folder / f"{PARTS[part]}.share-{rank}"
