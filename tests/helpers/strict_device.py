"""The devices that the fixture `device` in conftest.py gives to tests."""

import contextlib

import spacy.ml.parser_model
import spacy.pipeline.transition_parser
import spacy.util
import srsly.msgpack._msgpack_numpy
import thinc.backends
import thinc.types
import thinc.util
import torch
from helpers.strict_ops import TRANSFERS, XP, StrictOps, count_transfer
from thinc.api import get_current_ops, set_current_ops, use_ops


class Device:
    """The device of a test: the simulated GPU of strict_ops.py, or a real GPU.

    ops (Ops): The ops of the device.
    counts (bool): Whether transfers to the host are counted. A real GPU counts none.
    """

    def __init__(self, ops, counts):
        self.ops = ops
        self.counts = counts

    def has(self, array):
        return isinstance(array, self.ops.xp.ndarray)

    def host(self, array):
        return self.ops.to_numpy(array)

    @contextlib.contextmanager
    def transfers(self, *places):
        """Check where spacy_elmo makes transfers to the host within a `with` block. It
        must be at all of these places, and nowhere else.

        places (str): See strict_ops.Transfer.
        YIELDS (list[Transfer]): An empty list. After the block it has the transfers.
        """
        before, found = len(TRANSFERS), []
        yield found
        found += [transfer for transfer in TRANSFERS[before:] if transfer.place]
        stacks = {transfer.place: transfer.stack for transfer in found}
        if self.counts:
            assert set(stacks) == set(places), "\n".join(stacks.values())


@contextlib.contextmanager
def strict_device(monkeypatch):
    """Simulate a GPU within a `with` block: Thinc, spaCy and srsly use DeviceArray
    instead of cupy's arrays, and StrictOps instead of CupyOps."""
    TRANSFERS.clear()
    for module in (thinc.util, spacy.util, srsly.msgpack._msgpack_numpy):
        monkeypatch.setattr(module, "cupy", XP, raising=False)
    for module in (thinc.util, srsly.msgpack._msgpack_numpy):
        monkeypatch.setattr(module, "has_cupy", True)
    for module in (
        thinc.backends,
        spacy.ml.parser_model,
        spacy.pipeline.transition_parser,
    ):
        monkeypatch.setattr(module, "CupyOps", StrictOps)
    monkeypatch.setattr(thinc.types, "get_array_module", thinc.util.get_array_module)
    for name in "cpu item numpy tolist __array__ __bool__ __float__ __int__".split():
        monkeypatch.setattr(torch.Tensor, name, _counted(getattr(torch.Tensor, name)))
    current = get_current_ops()
    set_current_ops(StrictOps())
    try:
        yield Device(get_current_ops(), counts=True)
    finally:
        set_current_ops(current)


def _counted(method):
    def call(tensor, *args, **kwargs):
        count_transfer()
        return method(tensor, *args, **kwargs)

    return call


@contextlib.contextmanager
def real_device():
    with use_ops("cupy"):
        yield Device(get_current_ops(), counts=False)
