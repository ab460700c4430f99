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


class FakeGPU(TorchDispatchMode):
    """Intercepts every torch operation. Operations on the host run for real, operations
    on the GPU in torch's FakeTensorMode, which computes shapes and refuses to mix
    devices.

    device: The device to move models to.
    to_host (list): The shapes of all tensors that were copied back from the GPU.
    """

    def __init__(self):
        super().__init__()
        self.device = torch.device("cuda:0")
        self.to_host = []
        self._may_wait = True

    @contextlib.contextmanager
    def never_waits(self):
        """Refuse everything that makes the host wait for the GPU, as
        torch.cuda.set_sync_debug_mode("error") does on a real GPU."""
        self._may_wait = False
        try:
            yield
        finally:
            self._may_wait = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.ops.prim.device.default:
            # Only C++ code calls this. On CUDA, autograd would need streams, which a
            # CPU build of torch lacks; on "meta" it needs none.
            return META
        if kwargs.get("device") == META:  # the answer given above
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
        return func(*args, **kwargs)

    def _check_indices(self, x, indices):
        assert x.device == self.device, "an index for the host"
        for index in indices:
            if index is not None:
                # torch would copy it, and wait.
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
    """Provide a fake GPU within a `with` block."""
    with FakeTensorMode(allow_non_fake_inputs=True), FakeGPU() as gpu:
        yield gpu
