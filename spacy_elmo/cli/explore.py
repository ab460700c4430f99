"""`spacy elmo explore`: look at words in context, on a page in the browser."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option
from wasabi import msg

from . import app
from .common_options import (
    BILM_HELP,
    GPU_ID,
    LANG,
    TOKENIZER,
    exit_on_error,
    get_tokenization,
    load_on_device,
    say,
)

if TYPE_CHECKING:
    from ..bilm import BiLMBase
    from ..explore.corpus_search import CorpusSearch


@app.command("explore")
def explore_cli(
    source: Path | None = Argument(
        None,
        metavar="BILM",
        help=f"{BILM_HELP}; by default, the bundled one for --lang, or en",
    ),
    other: Path | None = Option(
        None, "--other", help="A second biLM, whose answers are shown beside the first"
    ),
    index_paths: list[Path] = Option(
        [],
        "--index",
        help="A folder that `spacy elmo neighbors --index` wrote: a text of yours to "
        "search in; can be given once for each biLM",
    ),
    port: int = Option(
        8765, "--port", min=0, max=65535, help="The port of the page; 0: any free one"
    ),
    lang: str | None = LANG,
    tokenizer: str | None = TOKENIZER,
    gpu_id: int = GPU_ID,
) -> None:
    """Open a page on this machine, to look at words in their contexts.

    Type or paste sentences and click a word: you see its nearest contexts in a text of
    yours or in the sentences themselves, layer by layer, the words that are likely in
    its place, how surprising each word is, and how similar the words of two sentences
    are. Only browsers on this machine can open the page, and it needs no network.
    """
    with exit_on_error():
        check_extra()
        from ..bilm.formats.bundled import bundled_for
        from ..explore.explorer import ExploredBiLM, Explorer
        from ..explore.web_app import make_app
        from ..explore.web_server import HOST, open_port, serve

        listener = open_port(port)
        sources = [source or Path(bundled_for(lang or "en"))]
        sources += [] if other is None else [other]
        bilms = [load_on_device(each, gpu_id) for each in sources]
        tokenization = get_tokenization(bilms[0], lang, tokenizer, False)
        corpora = open_corpora(bilms, index_paths)
        explored = [
            ExploredBiLM(str(each), bilm, corpora.get(number))
            for number, (each, bilm) in enumerate(zip(sources, bilms))
        ]
        server = make_app(Explorer(explored, tokenization.load()))
    with suppress(KeyboardInterrupt):
        msg.good(f"Open http://{HOST}:{listener.getsockname()[1]} in a browser")
        say("Press Ctrl-C here to stop.")
        serve(server, listener)


def check_extra() -> None:
    """Raise ValueError if the packages of the extra are not installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ValueError(
            "`spacy elmo explore` needs Starlette and uvicorn: "
            "pip install 'spacy-elmo[explore]'"
        ) from None


def open_corpora(
    bilms: "list[BiLMBase]", paths: list[Path]
) -> "dict[int, CorpusSearch]":
    """Open indexes. Each belongs to the biLM that it was made with.

    RETURNS (dict[int, CorpusSearch]): The corpus to search in, by the number of its
        biLM.
    """
    from ..analysis.token_index import open_index_of
    from ..explore.corpus_search import CorpusSearch

    corpora: dict[int, CorpusSearch] = {}
    for path in paths:
        number, index = open_index_of(path, bilms)
        if number in corpora:
            raise ValueError(f"{path}: found a second --index of a biLM; expected one")
        corpora[number] = CorpusSearch(index)
    return corpora
