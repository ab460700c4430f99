from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import GPU_ID, LANG, TITLE, TOKENIZED, TOKENIZER

CONTEXT = 10  # words printed on either side


@app.command("neighbors")
def neighbors_cli(
    source: Path = Argument(..., help="A biLM of any kind"),
    text: str = Argument(..., help="A file, a folder or a pattern"),
    queries: list[str] = Option(
        [], "--query", help="A sentence; may be given more than once"
    ),
    words: list[str] = Option([], "--word", help="A word in it; one for each query"),
    positions: list[int] = Option(
        [],
        "--position",
        help="Which word of the query it is, from 0, if it is there more than once; "
        "none, or one for each query",
    ),
    query_file: Path | None = Option(
        None,
        "--query-file",
        help="Queries, one a line, in which the word is in brackets: I [play] chess",
    ),
    layer: str | None = Option(
        None, "--layer", help="A number, 'mix' or 'all'; by default the top layer"
    ),
    top: int = Option(10, "--top", min=1, help="Neighbours to find"),
    index_path: Path | None = Option(
        None,
        "--index",
        help="A folder that keeps the vectors of TEXT for the next call",
    ),
    static: str | None = Option(
        None,
        "--static",
        help="A pipeline with word vectors for the words beside it; by default layer 0",
    ),
    approximate: bool = Option(
        False,
        "--approximate",
        help="Search with usearch: faster from the second time on",
    ),
    tokenized: bool = TOKENIZED,
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    title: str | None = TITLE,
    output: Path | None = Option(None, "--output", "-o", help="JSON to write"),
    gpu_id: int = GPU_ID,
) -> None:
    """Find the tokens of a text that are nearest to a word in its context.

    By the cosine in a layer, beside the nearest words of the text without context.
    An index of 3 layers of width 256 takes about 2 kB a token on disk.
    """
    from tqdm import tqdm

    from ..analysis.cosine_search import need_usearch
    from ..analysis.layer_vectors import layer_names
    from ..analysis.nearest_contexts import (
        choose_layers,
        find_neighbors,
        make_query,
        marked_query,
        read_queries,
        split_query,
    )
    from ..analysis.static_vectors import load_static
    from ..analysis.token_index import build_index, index_key, open_index
    from ..bilm.errors import SourceError
    from ..results import Neighbors, write_result
    from .common_options import get_tokenization, load_on_device

    try:
        marked = [] if query_file is None else read_queries(query_file)
        if not queries and not marked:
            raise ValueError("found no --query and no --query-file; expected either")
        for name, values in (("--word", words), ("--position", positions or words)):
            if len(values) != len(queries):
                raise ValueError(
                    f"found {len(queries)} --query and {len(values)} {name}; expected "
                    "one for each"
                )
        if approximate:
            need_usearch()
        bilm = load_on_device(source, gpu_id)
        layers = choose_layers(layer_names(bilm), layer)
        tokenization = get_tokenization(bilm, lang, tokenizer, tokenized)
        nlp = tokenization.load()
        places: list[int | None] = [*positions] or [None] * len(queries)
        asked = [
            make_query(split_query(nlp, query, tokenized), word, place)
            for query, word, place in zip(queries, words, places)
        ]
        asked += [marked_query(nlp, query, tokenized) for query in marked]
        vocab = None if static is None else load_static(static)
        key = index_key(bilm, text, tokenization)
        with TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            folder = index_path or Path(temporary) / "index"
            index = open_index(folder, key)
            if index is None:
                with tqdm(unit=" tokens", disable=None, leave=False) as bar:
                    index = build_index(
                        bilm, text, tokenization, folder, key, bar.update
                    )
                if index_path is not None:
                    msg.good(f"Indexed {len(index.tokens):,} tokens in {folder}")
            results = find_neighbors(
                bilm,
                index,
                asked,
                layers=layers,
                top=top,
                approximate=approximate,
                static=vocab,
            )
        if output is not None:
            name = title or f"{source.name}: {Path(text).name}"
            data = {"kind": "neighbors", "title": name, "queries": results}
            write_result(output, Neighbors.model_validate(data))
    except (SourceError, ValueError, OSError) as error:
        msg.fail(str(error), exits=1)
    for result in results:
        print_query(result)


def print_query(result: dict[str, Any]) -> None:
    msg.divider(mark(result["sentence"], result["position"]))
    for found in result["layers"]:
        name = found["layer"]
        print(f"\n{name if name == 'mix' else f'layer {name}'}")
        for item in found["neighbors"]:
            print(f"  {item['cosine']:.3f}  {mark(item['sentence'], item['position'])}")
    print("\nwords without context")
    for item in result["static"]:
        print(f"  {item['cosine']:.3f}  {item['word']}")
    if not result["static"]:
        print(f"  '{result['word']}' has no vector")


def mark(sentence: str, position: int) -> str:
    """RETURNS (str): The words around one that is put in brackets."""
    words = sentence.split(" ")
    begin, end = max(0, position - CONTEXT), position + CONTEXT + 1
    words[position] = f"[{words[position]}]"
    before, after = "... " * (begin > 0), " ..." * (end < len(words))
    return before + " ".join(words[begin:end]) + after
