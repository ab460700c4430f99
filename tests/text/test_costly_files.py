"""Small files that would need much memory."""

import gzip
import resource
import zlib
from collections import Counter
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from helpers.corpora import build
from helpers.forks import fork, wait
from pyarrow import parquet
from spacy.vocab import Vocab

from spacy_elmo.text.doc_files import load_docs
from spacy_elmo.text.line_check import LineCheck
from spacy_elmo.text.paragraphs import load_records
from spacy_elmo.text.parquet_pages import measure_column
from spacy_elmo.text.parquet_texts import load_parquet_texts


def peak():
    """Return the most memory that this process has had, in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def compress(pattern, size):
    """Compress a repeated pattern without holding it in memory."""
    packer = zlib.compressobj(9, wbits=31)
    block = pattern * (2**20 // len(pattern))
    parts = [packer.compress(block) for _ in range(size // len(block))]
    return b"".join([*parts, packer.flush()])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, pattern, n_bytes, most",
    [
        *(("a.txt.gz", pattern, 2**26, 120) for pattern in (b"x", b"\0", b" ")),
        # Records of JSON may be long.
        *(("a.jsonl.gz", pattern, 2**28, 150) for pattern in (b"[", b"{},")),
    ],
)
def test_a_compressed_endless_line_needs_little_memory(
    tmp_path, name, pattern, n_bytes, most
):
    path = tmp_path / name
    path.write_bytes(compress(pattern, n_bytes))

    def measure_build():
        before = peak()
        try:
            build(tmp_path / "corpus", path, lang="en", dev_share=0.1)
        except ValueError as error:
            assert "\n" not in str(error)
        (tmp_path / "growth").write_text(str(peak() - before))

    # In a process of its own, because the memory of this one may have been larger.
    assert wait(fork(measure_build), seconds=900) == 0
    # The bytes and the text of the whole line would take more.
    assert int((tmp_path / "growth").read_text()) / 1024 < most


@pytest.mark.parametrize("name", ["a.spacy", "a.spacy.gz"])
@pytest.mark.slow
def test_docs_that_are_too_large_for_their_file_are_refused(tmp_path, name):
    data = zlib.compress(bytes(2**27), 9)
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    before = peak()
    with pytest.raises(ValueError, match="more than 67,108,864 bytes of docs"):
        load_docs(path, Vocab())
    assert peak() - before < 2**16


@pytest.mark.parametrize(
    "record",
    [
        '{"text": ' + "[" * 10**6,
        '{"text": "a", "n": ' + "9" * 10**6 + "}",
        '{"text": "a", "n": 1e999999}',
        '{"text": "a", "n": -' + "0" * 10**5 + "}",
        '{"a": ' * 10**5,
    ],
)
def test_hostile_json_is_counted(tmp_path, record):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "good one"}\n' * 20 + record + "\n")
    corpus, _ = build(tmp_path / "corpus", path)
    assert corpus.meta["train"]["n_words"] in (40, 41)


def test_a_small_parquet_file_needs_little_memory(tmp_path):
    words = pa.array(["x y " * 50_000])  # 200 kB, of which each row is a copy
    column = pa.DictionaryArray.from_arrays(np.zeros(1000, np.int32), words)
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": column}), path, store_schema=False)
    assert path.stat().st_size < 10**5

    def measure_load():
        before = peak()
        assert sum(1 for _ in load_parquet_texts(path, Counter())) == 1000
        (tmp_path / "growth").write_text(str(peak() - before))

    assert wait(fork(measure_load)) == 0
    assert int((tmp_path / "growth").read_text()) / 1024 < 100


def test_parquet_that_is_too_large_for_its_file_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["x y " * 50_000] * 400})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(ValueError, match=f"^{path}: [^\n]*found texts of 80,"):
        next(load_parquet_texts(path, Counter()))


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(
    "encoding", [None, "PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]
)
def test_parquet_of_any_encoding_is_read(
    tmp_path, compression, version, checked, encoding
):
    texts = ["x y " * (n % 90) + str(n % 300) for n in range(3000)]
    path = tmp_path / "a.parquet"
    parquet.write_table(
        pa.table({"n": list(range(3000)), "text": texts}),
        path,
        compression=compression,
        data_page_version=version,
        write_page_checksum=checked,
        write_statistics=checked,
        use_dictionary=encoding is None,
        column_encoding={"text": encoding} if encoding else None,
        data_page_size=2000,
        row_group_size=1300,
    )
    assert list(load_parquet_texts(path, Counter())) == texts
    with path.open("rb") as file:
        column = parquet.ParquetFile(file).metadata.row_group(0).column(1)
        size = measure_column(file, column)
    # The size in the file includes the heads.
    assert 0.8 * column.total_uncompressed_size < size < column.total_uncompressed_size


def test_a_parquet_file_that_is_larger_than_it_says_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["x y " * 20_000_000]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    column = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    size = encode_number(column.total_uncompressed_size)
    small = b"\x82".ljust(len(size) - 1, b"\x80") + b"\0"  # 1, as long as the size
    # The size of the column, and that of the group of rows, which is the same.
    path.write_bytes(small.join(path.read_bytes().rsplit(size, 2)))
    column = parquet.ParquetFile(path).metadata.row_group(0).column(0)
    assert column.total_uncompressed_size == 1
    with pytest.raises(ValueError, match=f"^{path}: [^\n]*found texts of 80,"):
        next(load_parquet_texts(path, Counter()))


def encode_number(number):
    """Write a number as Parquet does it: the lowest 7 bits first, twice as large."""
    number, data = 2 * number, b""
    while number > 127:
        data, number = data + bytes([number & 127 | 128]), number >> 7
    return data + bytes([number])


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x00",
        b"\x15\x00\x15\x02",
        b"\x15" + b"\xff" * 20,
        b"\x15\x00\x15\x02\x15\x02\x05\x04\x02\x00",
        b"\x15\x00\x15\x01\x15\x02\x00",  # a negative size
        b"\x15\x00\x15\x02\x15\x02\x19\x00",  # a list
        b"\x15\x00\x15\x02\x15\x02\x18\xff\xff\xff\x7f",
        b"\x1c" * 10**5,
    ],
)
def test_heads_of_pages_that_could_mislead_are_refused(head):
    column = SimpleNamespace(
        data_page_offset=0, dictionary_page_offset=None, total_compressed_size=9
    )
    with pytest.raises(ValueError, match="found the head of a page"):
        measure_column(BytesIO(head), column)


def write_invalid_text(path):
    """Write a text that is not UTF-8."""
    table = pa.table({"text": pa.array([b"a\xff"])})
    parquet.write_table(table.cast(pa.schema({"text": pa.string()}), safe=False), path)


def write_list(path):
    parquet.write_table(pa.table({"text": [["a"]]}), path)


def write_cut(path):
    parquet.write_table(pa.table({"text": [f"a {n}" for n in range(2000)]}), path)
    path.write_bytes(gzip.compress(path.read_bytes())[:-200])


def write_damaged(path):
    parquet.write_table(pa.table({"text": [f"a {n}" for n in range(2000)]}), path)
    data = bytearray(gzip.compress(path.read_bytes()))
    data[20:60] = bytes(40)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "name, write",
    [
        ("a.parquet", write_invalid_text),
        ("a.parquet", write_list),
        ("a.parquet.gz", write_cut),
        ("a.parquet.gz", write_damaged),
    ],
)
def test_broken_parquet_is_named(tmp_path, name, write):
    path = tmp_path / name
    write(path)
    with pytest.raises(ValueError, match=f"^{path}: [^\n]*$"):
        list(load_parquet_texts(path, Counter()))


def test_records_of_many_small_values_need_little_memory(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a", "x": [' + "{}," * 10**7 + "{}]}\n")

    def measure_load():
        before = peak()
        assert not list(load_records(path, Counter(), LineCheck()))
        (tmp_path / "growth").write_text(str(peak() - before))

    assert wait(fork(measure_load)) == 0
    assert int((tmp_path / "growth").read_text()) / 1024 < 100
