"""`spacy elmo neighbors`: find the words nearest to a word in its context.

The command function is long because typer takes each option as a parameter.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from typer import Option
from wasabi import msg

from . import app
from .common_options import (
    BILM,
    ENCODING,
    GPU_ID,
    LANG,
    OUTPUT_JSON,
    STATIC,
    TEXT,
    TITLE,
    TOKENIZED,
    TOKENIZER,
    check_output_folder,
    exit_on_error,
    get_tokenization,
    load_on_device,
)

if TYPE_CHECKING:
    from ..analysis.neighbor_queries import MarkedSentence, Query
    from ..analysis.token_index import TokenIndex
    from ..bilm import BiLMBase
    from ..text.tokenizers import Tokenization

CONTEXT = 10  # words printed on each side of the marked word


@app.command("neighbors")
def neighbors_cli(
    source: Path = BILM,
    text: str = TEXT,
    queries: list[str] = Option(
        [], "--query", help="A sentence; can be given several times"
    ),
    words: list[str] = Option(
        [], "--word", help="The word of the query to search for; one for each --query"
    ),
    positions: list[int] = Option(
        [],
        "--position",
        help="The position of the word in the query, counted from 0, in case it occurs "
        "there more than once; none, or one for each --query",
    ),
    query_file: Path | None = Option(
        None,
        "--query-file",
        help="A file with one query per line, in which the word is in square brackets",
    ),
    layer: str | None = Option(
        None,
        "--layer",
        help="The layer to compare: a number, 'mix' (the mean of all layers) or 'all'; "
        "by default, the top layer",
    ),
    top: int = Option(10, "--top", min=1, help="How many neighbours to find"),
    index_path: Path | None = Option(
        None,
        "--index",
        callback=check_output_folder,
        help="A folder in which the vectors of TEXT are kept, so that the next call is "
        "fast",
    ),
    static: str | None = STATIC,
    approximate: bool = Option(
        False,
        "--approximate",
        help="Search with usearch: faster from the second call on, but may miss some "
        "neighbours",
    ),
    tokenized: bool = TOKENIZED,
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    encoding: str = ENCODING,
    title: str | None = TITLE,
    output: Path | None = OUTPUT_JSON,
    gpu_id: int = GPU_ID,
) -> None:
    """Find the words of a text that are nearest to a word in its context.

    Words are compared by the cosine of their vectors in a layer. For comparison, it
    also prints the nearest words without context, by static vectors or layer 0. With 3
    layers of width 256, an index needs about 2 kB of disk space per token.
    """
    from ..analysis.cosine_search import import_usearch
    from ..analysis.layer_vectors import layer_names
    from ..analysis.nearest_contexts import choose_layers, find_neighbors
    from ..analysis.neighbor_queries import read_queries
    from ..analysis.static_vectors import load_static_vectors
    from ..results import Neighbors, write_result

    with exit_on_error():
        marked = [] if query_file is None else read_queries(query_file)
        check_numbers(queries, words, positions, len(marked))
        if approximate:
            import_usearch()  # fails at once if it is not installed
        bilm = load_on_device(source, gpu_id)
        layers = choose_layers(layer_names(bilm), layer)
        tokenization = get_tokenization(bilm, lang, tokenizer, tokenized, encoding)
        parsed = make_queries(tokenization, queries, words, positions, marked)
        vocab = None if static is None else load_static_vectors(static)
        with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            index = get_index(bilm, text, tokenization, index_path, Path(temporary))
            results = find_neighbors(
                bilm,
                index,
                parsed,
                layers=layers,
                top=top,
                approximate=approximate,
                static=vocab,
            )
        if output is not None:
            name = title or f"{source.name}: {Path(text).name}"
            data = {"kind": "neighbors", "title": name, "queries": results}
            write_result(output, Neighbors.model_validate(data))
    for result in results:
        print_result(result)


def check_numbers(
    queries: list[str], words: list[str], positions: list[int], n_marked: int
) -> None:
    """Raise ValueError unless there is a query, a --word for each --query, and either
    no --position or one for each --query.

    n_marked (int): The number of queries in the query file.
    """
    if not queries and not n_marked:
        raise ValueError("found no --query and no --query-file; expected one of them")
    for name, values in (("--word", words), ("--position", positions or words)):
        if len(values) != len(queries):
            raise ValueError(
                f"found {len(queries)} --query and {len(values)} {name}; expected one "
                "for each"
            )


def make_queries(
    tokenization: "Tokenization",
    queries: list[str],
    words: list[str],
    positions: list[int],
    marked: "list[MarkedSentence]",
) -> "list[Query]":
    """Tokenize all queries: first those of the options, then those of the query file
    (marked)."""
    from ..analysis.neighbor_queries import (
        make_marked_query,
        make_query,
        tokenize_query,
    )

    nlp, tokenized = tokenization.load(), tokenization.tokenized
    found: list[int | None] = [*positions] or [None] * len(queries)
    parsed = [
        make_query(tokenize_query(nlp, query, tokenized), word, position)
        for query, word, position in zip(queries, words, found)
    ]
    return parsed + [make_marked_query(nlp, each, tokenized) for each in marked]


def get_index(
    bilm: "BiLMBase",
    text: str,
    tokenization: "Tokenization",
    index_path: Path | None,
    temporary: Path,
) -> "TokenIndex":
    """Open the index of a text. If there is none yet, or it is out of date, build it.

    index_path (Path | None): The folder of the index; by default, it is built in the
        folder `temporary`.
    """
    from tqdm import tqdm

    from ..analysis.token_index import build_index, index_key, open_index

    folder = index_path or temporary / "index"
    key = index_key(bilm, text, tokenization)
    index = open_index(folder, key, msg.warn)
    if index is None:
        with tqdm(unit=" tokens", disable=None, leave=False) as bar:
            index = build_index(bilm, text, tokenization, folder, key, bar.update)
        if index_path is not None:
            msg.good(f"Indexed {len(index.tokens):,} tokens in {folder}")
    return index


def print_result(result: dict[str, Any]) -> None:
    msg.divider(mark_word(result["sentence"], result["position"]))
    for found in result["layers"]:
        name = found["layer"]
        print(f"\n{name if name == 'mix' else f'layer {name}'}")
        for item in found["neighbors"]:
            sentence = mark_word(item["sentence"], item["position"])
            print(f"  {item['cosine']:.3f}  {sentence}")
    print("\nnearest words without context")
    for item in result["static"]:
        print(f"  {item['cosine']:.3f}  {item['word']}")
    if not result["static"]:
        print(f"  '{result['word']}' has no vector")


def mark_word(sentence: str, position: int) -> str:
    """Put a word of a sentence in brackets, and shorten the sentence to CONTEXT words
    on each side of it."""
    words = sentence.split(" ")
    begin, end = max(0, position - CONTEXT), position + CONTEXT + 1
    words[position] = f"[{words[position]}]"
    before, after = "... " * (begin > 0), " ..." * (end < len(words))
    return before + " ".join(words[begin:end]) + after
