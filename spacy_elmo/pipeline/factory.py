"""The factory of the component. spaCy imports this module for every pipeline."""

from collections.abc import Callable

from spacy.language import Language
from thinc.api import Model

from ..layers.settings import EncodingSettings
from ..text.token_kinds import find_tokenizer_kind
from .component import Elmo
from .storage_settings import StorageSettings

DEFAULT_CONFIG = {
    "model": {"@architectures": "spacy-elmo.ElmoModel.v1"},
    "bilm": None,
    "mix": None,
    "surprisal": False,
    "frozen": True,
    "precision": "float32",
    **EncodingSettings().to_dict(),
    **StorageSettings().to_dict(),
}


@Language.factory(
    "elmo",
    assigns=[
        "doc.tensor",
        "doc._.elmo",
        "doc._.elmo_surprisal",
        "token._.elmo",
        "token._.elmo_layers",
        "token._.elmo_surprisal",
        "span._.elmo",
    ],
    default_config=DEFAULT_CONFIG,
)
def make_elmo(
    nlp: Language,
    name: str,
    model: Callable[..., Model],
    bilm: str | None,
    mix: list[float] | None,
    surprisal: bool,
    frozen: bool,
    precision: str,
    segments: str,
    window: int,
    overlap: int,
    stateful: bool,
    max_batch_tokens: int,
    set_tensor: str,
    store_layers: str,
    store_dtype: str,
    cache_layers: str,
    cache_memory_mb: int,
    cache_folder: str | None,
) -> Elmo:
    """Make an `elmo` component.

    model (Callable[..., Model[list[Doc], Layers]]): The function that builds the model:
        what the architecture spacy-elmo.ElmoModel.v1 returns.
    bilm (str | None): A folder, a file or the name of a bundled biLM, as for load_bilm.
        None for the bundled biLM of the pipeline's language and kind of tokens. The
        biLM is loaded when its weights are first needed. A saved pipeline contains its
        weights and never loads this biLM.
    mix (list[float] | None): The share of each layer in doc.tensor, from the token
        vectors to the top layer, (n_layers + 1,); None for the mean of all layers.
    surprisal (bool): Also set doc._.elmo_surprisal. This needs the softmax of the biLM,
        which makes a saved pipeline larger.
    frozen (bool): Whether training leaves the weights of the biLM unchanged.
    precision (str): "float32", or "int8" for approximate vectors that are faster on a
        CPU where LSTMs are large. It needs torch.
    segments, window, overlap, stateful, max_batch_tokens: See EncodingSettings.
    set_tensor, store_layers, store_dtype, cache_layers, cache_memory_mb, cache_folder:
        See StorageSettings.
    """
    if surprisal and stateful:
        raise ValueError(
            "elmo: found both surprisal and stateful; expected one of them, because "
            "surprisal is computed for each segment alone"
        )
    elmo_model = model(
        bilm,
        EncodingSettings(segments, window, overlap, stateful, max_batch_tokens),
        frozen=frozen,
        lang=nlp.lang,
        tokens=find_tokenizer_kind(nlp.tokenizer),
        keep_softmax=surprisal,
        precision=precision,
    )
    storage = StorageSettings(
        set_tensor,
        store_layers,
        store_dtype,
        cache_layers,
        cache_memory_mb,
        cache_folder,
    )
    elmo = Elmo(nlp.vocab, elmo_model, name, mix=mix, storage=storage)
    elmo.position.attach(nlp)
    return elmo
