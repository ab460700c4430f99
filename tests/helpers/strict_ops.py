"""A simulated GPU for Thinc: arrays on the CPU that are as strict as cupy's.

Operations that fail with cupy fail here too. Transfers that make the host (the CPU)
wait for the device (the GPU) are recorded, with the place in the code that asked for
them. Everything is in the memory of the CPU. A torch tensor on the CPU is treated as a
tensor on the device.
"""

import operator
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import srsly
import thinc
import torch
from thinc.api import NumpyOps, Ops

import spacy_elmo

# Transfers to the host

OURS = Path(spacy_elmo.__file__).parent
# The folders with code for Thinc. For code that uses torch, see fake_cuda.py.
WATCHED = (OURS / "layers", OURS / "pipeline")
THINC = Path(thinc.__file__).parent
# Transfers in this code are counted for its caller.
HELPERS = (
    str(Path(__file__).with_name("strict_")),
    str(THINC / "backends"),
    str(THINC / "util.py"),
    str(THINC / "types.py"),
    str(Path(np.__file__).parent),
    str(Path(srsly.__file__).parent),
    str(OURS / "bilm" / "fingerprint.py"),
)


class Transfer(NamedTuple):
    """A transfer from the device to the host.

    place (str): The file and function that asked for it, such as "layer_cache.py:put".
        It is "" if the file is not in one of the WATCHED folders, for example if a
        layer of Thinc asked. The file is that of the innermost stack frame outside
        HELPERS. Compiled code of spaCy has no stack frames, so its caller counts. The
        function is the innermost public one in that file.
    stack (str): The call stack, as text.
    """

    place: str
    stack: str


TRANSFERS = []


def count_transfer():
    frames = [
        (frame, line)
        for frame, line in traceback.walk_stack(sys._getframe(1))
        if not frame.f_code.co_filename.startswith(HELPERS)
    ]
    filename = frames[0][0].f_code.co_filename
    names = [
        frame.f_code.co_name
        for frame, _ in frames
        if frame.f_code.co_filename == filename
    ]
    # Skip private functions, comprehensions and lambdas, and name their caller.
    name = next((name for name in names if name[0] not in "_<"), names[0])
    path = Path(filename)
    place = f"{path.name}:{name}" if path.parent in WATCHED else ""
    stack = traceback.StackSummary.extract(iter(frames), limit=6)
    TRANSFERS.append(Transfer(place, "".join(reversed(stack.format()))))


# Arrays


class DeviceArray:
    """Simulates cupy.ndarray, which cannot be mixed with numpy arrays."""

    __slots__ = ("_array",)
    __hash__ = None

    def __init__(self, shape, dtype="float64", order="C"):
        self._array = np.empty(shape, dtype, order)

    def __array__(self, *args, **kwargs):
        raise TypeError(
            "Implicit conversion of an array on the device to a numpy array is not "
            "allowed; use ops.to_numpy for an explicit one"
        )

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if any(isinstance(x, (list, tuple)) for x in inputs):
            return NotImplemented
        return wrap(getattr(ufunc, method)(*on_device(inputs), **on_device(kwargs)))

    def __array_function__(self, func, types, args, kwargs):
        module = XP
        for name in func.__module__.split(".")[1:]:
            module = getattr(module, name)
        return getattr(module, func.__name__)(*args, **kwargs)

    def __len__(self):
        return len(self._array)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        if any(is_mask(part) for part in parts):
            count_transfer()  # because the host has to know the size of the result
        return wrap(self._array[as_index(index)])

    def __setitem__(self, index, value):
        if isinstance(value, (list, tuple)):
            raise TypeError("a list cannot be assigned to an array on the device")
        self._array[as_index(index)] = on_device(value)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def __reduce__(self):
        return XP.array, (self.get(),)

    def get(self, stream=None, order="C", out=None):
        count_transfer()
        return self._array.copy(order)

    def set(self, array, stream=None):
        self._array[...] = array

    def toDlpack(self):
        # There is no __dlpack__, so that numpy.from_dlpack refuses the array.
        return self._array.__dlpack__()


def wrap(result):
    """Convert the results of a computation to device arrays. Like cupy, do this also
    with numbers."""
    if isinstance(result, (np.ndarray, np.generic)):
        array = object.__new__(DeviceArray)
        array._array = np.asarray(result)
        return array
    if isinstance(result, (list, tuple)):
        return type(result)(map(wrap, result))
    return result


def on_device(value):
    """Return the numpy arrays inside the device arrays among the arguments of a
    computation. Raise TypeError for arrays on the host."""
    if isinstance(value, DeviceArray):
        return value._array
    if isinstance(value, (np.ndarray, torch.Tensor)):
        raise TypeError(f"Unsupported type {type(value)} in work on the device")
    if isinstance(value, (list, tuple)):
        return type(value)(map(on_device, value))
    if isinstance(value, dict):
        return {key: on_device(item) for key, item in value.items()}
    return value


def as_index(index):
    """Return the numpy array inside an index. Indices on the host are accepted, because
    cupy copies them to the device."""
    if isinstance(index, tuple):
        return tuple(map(as_index, index))
    if isinstance(index, slice):
        ends = (index.start, index.stop, index.step)
        return slice(*(int(x) if isinstance(x, DeviceArray) else x for x in ends))
    return index._array if isinstance(index, DeviceArray) else index


def is_mask(index):
    return isinstance(index, DeviceArray) and index.dtype == bool


ATTRIBUTES = "shape dtype ndim size nbytes itemsize strides flags T".split()
METHODS = (
    "all any argmax argmin argsort astype clip copy cumsum diagonal dot fill flatten "
    "max mean min prod ravel repeat reshape round sort squeeze std sum swapaxes take "
    "transpose var view __neg__ __pos__ __abs__ __invert__"
).split()
# Methods that transfer to the host. DeviceArray has no __index__, like cupy's arrays,
# so that range(x) and a_list[x] fail.
FETCHES = (
    "item tolist tobytes nonzero __bool__ __int__ __float__ __complex__ __repr__ "
    "__str__ __format__"
).split()
COMPARISONS = "lt le eq ne gt ge".split()
OPERATORS = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
).split()


def _add_methods():
    def attribute(name):
        return property(lambda self: wrap(getattr(self._array, name)))

    def method(name):
        def call(self, *args, **kwargs):
            function = getattr(self._array, name)
            return wrap(function(*on_device(args), **on_device(kwargs)))

        return call

    def fetch(name):
        def call(self, *args):
            count_transfer()
            return getattr(self._array, name)(*args)

        return call

    def binary(function):
        def call(self, other):
            if isinstance(other, (list, tuple)):
                return NotImplemented
            return wrap(function(self._array, on_device(other)))

        return call

    def swapped(function):
        return binary(lambda x, y: function(y, x))

    def in_place(function):
        def call(self, other):
            if isinstance(other, (list, tuple)):
                return NotImplemented
            function(self._array, on_device(other))
            return self

        return call

    for name in ATTRIBUTES:
        setattr(DeviceArray, name, attribute(name))
    for name in METHODS:
        setattr(DeviceArray, name, method(name))
    for name in FETCHES:
        setattr(DeviceArray, name, fetch(name))
    for name in COMPARISONS:
        setattr(DeviceArray, f"__{name}__", binary(getattr(operator, name)))
    for name in OPERATORS:
        function = getattr(operator, f"__{name}__")
        setattr(DeviceArray, f"__{name}__", binary(function))
        setattr(DeviceArray, f"__r{name}__", swapped(function))
        change = getattr(operator, f"__i{name}__")
        setattr(DeviceArray, f"__i{name}__", in_place(change))


_add_methods()


# The namespace


class Function:
    """A function of numpy that takes and returns device arrays."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *args, **kwargs):
        name = self._function.__name__
        if name in ("nonzero", "flatnonzero", "argwhere", "unique") or (
            name == "where" and len(args) == 1
        ):
            count_transfer()  # because the host has to know the size of the result
        result = self._function(*on_device(args), **on_device(kwargs))
        if name in ("allclose", "array_equal"):
            result = np.bool_(result)
        return wrap(result)

    def __getattr__(self, name):
        return Function(getattr(self._function, name))


class Namespace:
    """Simulates the module cupy, or a submodule of it."""

    ndarray = DeviceArray

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return Namespace(found)
        if callable(found) and not isinstance(found, type):
            return Function(found)
        return found

    def array(self, data, dtype=None, **kwargs):
        return wrap(np.array(self._explicit(data), dtype, **kwargs))

    def asarray(self, data, dtype=None, **kwargs):
        if isinstance(data, torch.Tensor):
            data = wrap(TENSOR_TO_NUMPY(data.detach()))
        if isinstance(data, DeviceArray):
            return wrap(np.asarray(data._array, dtype, **kwargs))
        return self.array(data, dtype, **kwargs)

    def _explicit(self, data):
        """Accept data from the host or the device. Raise TypeError for a mixture."""
        parts = data if isinstance(data, (list, tuple)) else [data]
        mixed = any(isinstance(part, DeviceArray) for part in parts)
        return on_device(data) if mixed else data

    def split(self, array, indices, axis=0):
        # This is the only function of cupy whose indices have to be on the host.
        return wrap(np.split(on_device(array), indices, axis))


XP = Namespace(np)
TENSOR_TO_NUMPY = torch.Tensor.numpy


class StrictOps(Ops):
    """Simulates CupyOps. Where CupyOps has a CUDA kernel, this uses NumpyOps."""

    name = "strict"
    xp = XP

    def __init__(self, device_type="gpu", device_id=0, **kwargs):
        super().__init__(device_type, device_id)

    def to_numpy(self, data, *, byte_order=None):
        if not isinstance(data, np.ndarray):
            data = data.get()
        if byte_order:
            data = np.asarray(data, dtype=data.dtype.newbyteorder(byte_order))
        return data

    def asarray(self, data, dtype=None):
        return self.xp.asarray(data, dtype)


def _kernel(name):
    def check(value):
        if isinstance(value, DeviceArray) and not value.flags["C_CONTIGUOUS"]:
            # A CUDA kernel would ignore the strides and give wrong numbers.
            raise ValueError(f"{name}: found an array that is not contiguous")
        return on_device(value)

    def kernel(self, *args, **kwargs):
        kwargs = {key: check(value) for key, value in kwargs.items()}
        return wrap(getattr(NumpyOps(), name)(*map(check, args), **kwargs))

    return kernel


for _name in (
    "adam backprop_maxout backprop_mish backprop_reduce_max backprop_reduce_mean "
    "backprop_reduce_sum backprop_seq2col clip_gradient gather_add hash maxout mish "
    "reduce_max reduce_mean reduce_sum scatter_add seq2col"
).split():
    setattr(StrictOps, _name, _kernel(_name))
