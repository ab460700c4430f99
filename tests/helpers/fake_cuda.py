"""A fake CUDA device, to test GPU code on a machine without a GPU."""

import contextlib

import torch
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")


aten = torch.ops.aten
PRODUCTS = {aten.mm.default: 0, aten.addmm.default: 1, aten.bmm.default: 0}


class FakeGPU(TorchDispatchMode):
    """Intercepts every torch operation. Operations on the CPU run as usual. Operations
    on the GPU run in torch's FakeTensorMode, which computes only shapes and raises an
    error if devices are mixed.

    device (torch.device): The fake GPU, to which tests move their models.
    to_host (list[tuple]): The shape of each tensor that was copied to the CPU.
    products (list[tuple]): The shape of the left factor of each matrix product on the
        GPU.
    """

    def __init__(self):
        super().__init__()
        self.device = torch.device("cuda:0")
        self.to_host = []
        self.products = []
        self._may_wait = True

    @contextlib.contextmanager
    def never_waits(self):
        """Fail if, within a `with` block, the CPU has to wait for the GPU. On a real
        GPU, torch.cuda.set_sync_debug_mode("error") does the same."""
        self._may_wait = False
        try:
            yield
        finally:
            self._may_wait = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.ops.prim.device.default:
            # Autograd asks this from C++. For a CUDA device it would use streams, which
            # a CPU build of torch lacks. For "meta" it uses none.
            return META
        if kwargs.get("device") == META:  # because it was returned above
            kwargs["device"] = self.device
        leaves = tree_leaves((args, kwargs))
        if not any(isinstance(x, FakeTensor) or x == self.device for x in leaves):
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        if func in (aten.index.Tensor, aten.index_put.default, aten.index_put_.default):
            self._check_indices(*args[:2])
        if func in (aten._to_copy.default, aten.copy_.default):
            target = kwargs.get("device") or args[0].device
            source = args[0] if func is aten._to_copy.default else args[1]
            if target.type != source.device.type:
                return self._copy(func, target, source, args, kwargs)
        if func in PRODUCTS:
            self.products.append(tuple(args[PRODUCTS[func]].shape))
        return func(*args, **kwargs)

    def _check_indices(self, x, indices):
        assert x.device == self.device, "an index for the host"
        for index in indices:
            if index is not None:
                # torch would copy an index on the CPU to the GPU, and wait for that.
                assert index.device == self.device, "an index on the host"
                assert index.dtype != torch.bool, "a mask: nobody knows the size"

    def _copy(self, func, target, source, args, kwargs):
        blocking = not kwargs.get("non_blocking", False)
        if target.type == "cpu":
            assert self._may_wait, "a copy to the host"
            assert func is aten._to_copy.default and blocking
            self.to_host.append(tuple(source.shape))
            with unset_fake_temporarily():
                return torch.zeros(
                    source.shape, dtype=kwargs.get("dtype", source.dtype)
                )
        assert self._may_wait or not blocking, "a copy that waits for the GPU"
        return func(*args, **kwargs)


@contextlib.contextmanager
def fake_cuda():
    """Create a FakeGPU that is active within a `with` block."""
    with FakeTensorMode(allow_non_fake_inputs=True), FakeGPU() as gpu:
        yield gpu
