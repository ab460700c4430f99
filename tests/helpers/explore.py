"""Small biLMs, and the page of `spacy elmo explore` with them."""

import threading
import time
from contextlib import contextmanager

import spacy
import torch
from helpers.analysis import make_bilm

from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig, SoftmaxConfig
from spacy_elmo.explore.explorer import ExploredBiLM, Explorer

WORDS = "the a of stick plan stone to and he we threw".split()
TEXT = "We stick to the plan.\nHe threw a stick and a stone."


def make_bilm_with_softmax(seed=1, n_layers=2):
    """Make a random biLM that can predict WORDS."""
    torch.manual_seed(seed)
    vocab = ["<S>", "</S>", "<UNK>", *WORDS]
    encoder = BytesConfig(char_dim=4, filters=[[1, 8], [2, 12]])
    lstm = LSTMConfig(dim=24, projection_dim=8, n_layers=n_layers)
    return BiLM(
        BiLMConfig(encoder, lstm, SoftmaxConfig(len(vocab)), {"lang": "en"}),
        vocab=vocab,
    )


def make_explorer(*bilms, corpora=(), lang="en"):
    """Make an explorer of biLMs, by default of one without a softmax.

    corpora (Sequence[CorpusSearch | None]): The corpus of each biLM.
    """
    bilms = bilms or (make_bilm(),)
    corpora = [*corpora, *[None] * len(bilms)]
    explored = [
        ExploredBiLM(f"bilm-{number}", bilm, corpus)
        for number, (bilm, corpus) in enumerate(zip(bilms, corpora))
    ]
    return Explorer(explored, spacy.blank(lang))


@contextmanager
def serve_page(explorer):
    """Serve the page in a thread, and yield its address."""
    import uvicorn

    from spacy_elmo.explore.web_app import make_app
    from spacy_elmo.explore.web_server import open_port

    listener = open_port(0)
    config = uvicorn.Config(
        make_app(explorer), lifespan="off", log_level="error", ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
