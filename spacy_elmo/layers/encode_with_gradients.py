"""Encode segmented docs with a biLM that is trained."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..bilm import BiLM
from ..bilm.devices import to_device
from ..bilm.engines.packing import plan
from ..bilm.state import State
from .encode_docs import Segment, encode_calls
from .segments import SegmentedDoc
from .settings import EncodingSettings


def encode_docs_with_gradients(
    bilm: BiLM, docs: Sequence[SegmentedDoc], settings: EncodingSettings
) -> list[Tensor]:
    """Compute the layers of docs as a differentiable function of the weights. Gradients
    do not flow through the LSTM states that a segment passes to the next one.

    RETURNS (list[Tensor]): (n_tokens, n_layers + 1, width) for each doc.
    """
    n_layers, width = bilm.config.lstm.n_layers + 1, bilm.config.width
    # Row 0 is for whitespace tokens, whose vectors are zero.
    parts = [torch.zeros(1, n_layers, width, device=bilm.device)]
    rows = [np.zeros(doc.n_tokens, dtype=np.int64) for doc in docs]

    def encode(segments: list[Segment], state: State | None) -> State | None:
        n_rows = sum(map(len, parts))
        lengths = [len(segment.words) for segment in segments]
        for packing in plan(lengths, settings.max_batch_tokens):
            chosen = [segments[number] for number in packing.rows]
            batch = bilm.prepare([segment.words for segment in chosen])
            output = bilm(batch, None if state is None else state.take(packing.rows))
            if state is not None:
                end = State(*(part.detach() for part in output.state))
                state.put(packing.rows, end)
            layers = output.layers.permute(1, 2, 0, 3)  # (n_segments, n_steps, ...)
            n_steps = layers.shape[1]
            for number, segment in enumerate(chosen):
                # Step 0 is the sentence boundary.
                steps = np.arange(len(segment.words))[segment.keep] + 1
                rows[segment.doc][segment.tokens] = n_rows + number * n_steps + steps
            parts.append(layers.reshape(-1, n_layers, width))
            n_rows += len(parts[-1])
        return state

    encode_calls(bilm, docs, settings, encode)
    index = to_device(np.concatenate(rows), bilm.device)
    found = torch.cat(parts).index_select(0, index)
    return list(found.split([doc.n_tokens for doc in docs]))
