"""A fake CUDA device, to test GPU code on a machine without a GPU."""

import contextlib
from collections import Counter
from unittest.mock import patch

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
PRODUCTS = {
    aten.mm.default: 0,
    aten.addmm.default: 1,
    aten.bmm.default: 0,
    aten.baddbmm_.default: 1,
}
# Operations that read values or count them on the host, which has to wait for them.
ITEM, UNIQUE = aten._local_scalar_dense.default, aten._unique2.default
# Operations beside views that launch no kernel.
NO_KERNEL = ("aten::empty", "aten::new_empty", "aten::_unsafe_view", "aten::lift_fresh")


class FakeGPU(TorchDispatchMode):
    """Intercepts every torch operation. Operations on the CPU run as usual. Operations
    on the GPU run in torch's FakeTensorMode, which computes only shapes and raises an
    error if devices are mixed.

    device (torch.device): The fake GPU, to which tests move their models.
    to_host (list[tuple]): The shape of each tensor that was copied to the CPU.
    bytes_to_host (int): The size of these tensors and of the numbers that were read.
    products (list[tuple]): The shape of the left factor of each matrix product on the
        GPU.
    launches (Counter[str]): The operations that compute on the GPU. Each counts as one
        launch of a kernel, even if it launches several. Views, new memory and copies
        between host and GPU count as none.
    waits (list[str]): The operations for which the host waits for the GPU.
    """

    def __init__(self):
        super().__init__()
        self.device = torch.device("cuda:0")
        self._may_wait = True
        self.reset()

    def reset(self):
        """Begin to count again."""
        self.to_host, self.bytes_to_host = [], 0
        self.products, self.launches, self.waits = [], Counter(), []

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
        if func in (ITEM, UNIQUE):
            return self._wait(func, args[0])
        if func in PRODUCTS:
            self.products.append(tuple(args[PRODUCTS[func]].shape))
        self._count(func)
        return func(*args, **kwargs)

    def _count(self, func):
        if not func.is_view and not func.name().startswith(NO_KERNEL):
            self.launches[func.name().split(".")[0]] += 1

    def _wait(self, func, x):
        """Return the number 1, or all values as if they were distinct."""
        self._note_wait(f"{func}: a value on the host")
        if func is ITEM:
            self.bytes_to_host += x.element_size()
            return 1.0 if x.dtype.is_floating_point else 1
        self.bytes_to_host += 8  # the number of distinct values
        self._count(func)
        return x.flatten().clone(), torch.empty_like(x), x.new_empty(0)

    def _note_wait(self, reason):
        assert self._may_wait, reason
        self.waits.append(reason)

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
            self._note_wait("a copy to the host")
            assert func is aten._to_copy.default and blocking
            self.to_host.append(tuple(source.shape))
            self.bytes_to_host += source.nbytes
            with unset_fake_temporarily():
                return torch.zeros(
                    source.shape, dtype=kwargs.get("dtype", source.dtype)
                )
        if blocking:
            self._note_wait("a copy that waits for the GPU")
        return func(*args, **kwargs)


class HostGenerator(torch.Generator):
    """A generator for the fake GPU. A CPU build of torch has none for a GPU."""

    def __new__(cls, device=None):
        return super().__new__(cls)


@contextlib.contextmanager
def fake_cuda():
    """Create a FakeGPU that is active within a `with` block."""
    with (
        patch("torch.Generator", HostGenerator),
        FakeTensorMode(allow_non_fake_inputs=True),
        FakeGPU() as gpu,
    ):
        yield gpu
