"""Store weights on disk in fewer bits. In memory they are always float32."""

import numpy as np

STORED = "stored"
DTYPES = (STORED, "float32", "float16", "int8")
SCALES = ".scales"  # appended to the name of an array that is stored in 8 bits

Arrays = dict[str, np.ndarray]


def quantize(arrays: Arrays, dtype: str, stored: Arrays | None = None) -> Arrays:
    """Convert arrays to the types in which they are written.

    dtype (str): "float32" (unchanged), "float16", "int8" or "stored". With "int8",
        matrices with more than half as many elements as the largest one become whole
        numbers from -127 to 127 with one scale per column; the rest becomes float16.
        "stored" leaves each array as it was loaded, if its values have not changed
        since, and writes the others as float32.
    stored (Arrays | None): What was loaded in fewer bits, for "stored".
    RETURNS (Arrays): The arrays by name. The scales (1, n_columns) of an array in 8
        bits have its name with SCALES appended.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; expected one of {', '.join(DTYPES)}")
    if dtype == STORED:
        return _as_stored(arrays, stored or {})
    if dtype == "float32":
        return arrays
    written = {}
    # In a biLM the largest matrices are those of the LSTMs. Encoder weights stay in
    # float16: an error there reaches every layer, and they are small.
    sizes = [array.size for array in arrays.values() if array.ndim == 2]
    limit = max(sizes, default=0) / 2
    for name, array in arrays.items():
        if dtype == "int8" and array.ndim == 2 and array.size > limit:
            largest = np.abs(array).max(0, keepdims=True)
            scales = np.maximum(largest, np.float32(1e-12)) / np.float32(127)
            written[name] = np.rint(array / scales).astype(np.int8)
            written[name + SCALES] = scales
        else:
            written[name] = _to_float16(name, array)
    return written


def dequantize(array: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """Convert a stored array to float32, always to the same bits. An array in float32
    is not copied.

    scales (np.ndarray | None): The scales of an array in 8 bits, (1, n_columns).
    """
    if scales is None:
        return np.ascontiguousarray(array, np.float32)
    with np.errstate(all="ignore"):  # values that are not finite are refused later
        return np.multiply(array, scales, dtype=np.float32)


def _to_float16(name: str, array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        small = array.astype(np.float16)
    wrong = ~np.isfinite(small)
    if wrong.any():
        raise ValueError(
            f"found {array[wrong][0]} in '{name}'; expected at most "
            f"{np.finfo(np.float16).max:.0f}, the largest number of float16, or "
            "another dtype"
        )
    return small


def _as_stored(arrays: Arrays, stored: Arrays) -> Arrays:
    written = {}
    for name, array in arrays.items():
        scales = stored.get(name + SCALES)
        if name in stored and _same_bits(dequantize(stored[name], scales), array):
            written[name] = stored[name]
            if scales is not None:
                written[name + SCALES] = scales
        else:
            written[name] = array
    return written


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(
        np.ascontiguousarray(one).view(np.uint32),
        np.ascontiguousarray(other).view(np.uint32),
    )
