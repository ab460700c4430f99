"""Decode text, and guess the encoding of a text that is not UTF-8."""

import codecs
import re
from collections.abc import Callable

UTF8 = "utf-8"
SAMPLE = 2**16  # bytes that are enough to recognise an encoding
MAX_INVALID = 0.01  # share of characters that may be damaged in a text that fits
MAX_CONTROL = 0.005  # share of control characters; with more, data is not text

# Tab, line ends, form feed and escape occur in text, other control characters do not.
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
KANA = re.compile(r"[\u3041-\u30fe]")
JAPANESE = re.compile(r"[\u3000-\u30fe\u4e00-\u9fff\uff01-\uff5e]")
# The most frequent letters of Russian, about two thirds of a text. If a text is decoded
# with the wrong encoding, they become capitals or other letters.
CYRILLIC = re.compile(r"[оеаинтсрвл]")
LATIN = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿŒœŠšŽžŸ]")
PUNCTUATION = re.compile(r"[\x85\xa0\xa1\xa7\xab\xb0\xb4\xb7\xbb\xbf‘’“”„‚–—…•€™]")


def check_encoding(name: str) -> None:
    """Raise ValueError if Python knows no encoding of text with this name."""
    try:
        "a\n".encode(name)
    except (LookupError, ValueError):
        raise ValueError(
            f"found the encoding {name!r}; expected one that Python knows, such as "
            "utf-8, cp949 or latin-1"
        ) from None


def is_utf8(name: str) -> bool:
    return codecs.lookup(name).name in ("utf-8", "utf-8-sig")


def make_recoder(name: str) -> Callable[[bytes], bytes]:
    """Return a function that converts one block after the other of a text to UTF-8. An
    empty block ends the text. Invalid bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder(name)("replace")
    return lambda block: decoder.decode(block, not block).encode("utf-8", "replace")


def guess_encoding(data: bytes) -> str | None:
    """Guess the encoding of a text by how typical its characters are.

    data (bytes): The beginning of the text, which is not UTF-8.
    RETURNS (str | None): A name that Python knows, or None if no encoding of a short
        list fits.
    """
    data = data[:SAMPLE]
    for name, is_typical in CANDIDATES.items():
        try:
            text = codecs.getincrementaldecoder(name)("replace").decode(data)
        except UnicodeError:  # no byte order mark
            continue
        n_invalid = text.count("\ufffd") + len(CONTROL.findall(text))
        if n_invalid <= MAX_INVALID * len(text) and is_typical(text):
            return name
    return None


def is_binary(data: bytes) -> bool:
    """Return whether data has control characters that no text has in any of the usual
    encodings, except UTF-16 and UTF-32."""
    sample = data[:SAMPLE].decode("latin-1")
    return len(CONTROL.findall(sample)) > MAX_CONTROL * len(sample)


def _other(text: str) -> str:
    """Return the characters that are not ASCII."""
    return re.sub(r"[\x00-\x7f]+", "", text)


def _is_utf16(text: str) -> bool:
    """Return whether text has spaces and few characters beyond the usual ones. In
    other data, most pairs of bytes are rare characters."""
    n_spaces = len(re.findall(r"[ \n\u3000-\u3002]", text))
    n_usual = len(re.findall(r"[\t-\u06ff\u0900-\u0dff\u3000-\u9fff가-힣]", text))
    return n_spaces >= len(text) / 100 > 0 and n_usual > 0.9 * len(text)


def _is_japanese(text: str) -> bool:
    other = _other(text)
    n_japanese = len(JAPANESE.findall(other))
    n_kana = len(KANA.findall(other))
    return n_japanese > 0.95 * len(other) and n_kana > 0.15 * n_japanese


def _has_frequent(
    text: str, encoding: str, first_byte: range, second_byte: range
) -> bool:
    """Return whether most letters lie in the part of an encoding with frequent ones.

    first_byte, second_byte (range): The bytes of frequent letters.
    """
    letters = re.findall(r"\w", _other(text))
    codes = [letter.encode(encoding, "replace") for letter in letters]
    n_frequent = sum(
        len(code) == 2 and code[0] in first_byte and code[1] in second_byte
        for code in codes
    )
    return n_frequent > 0.85 * len(codes) > 0


def _is_korean(text: str) -> bool:
    return _has_frequent(text, "cp949", range(0xB0, 0xC9), range(0xA1, 0xFF))


def _is_simplified_chinese(text: str) -> bool:
    return _has_frequent(text, "gb18030", range(0xB0, 0xD8), range(0xA1, 0xFF))


def _is_traditional_chinese(text: str) -> bool:
    return _has_frequent(text, "big5", range(0xA4, 0xC7), range(0x40, 0xFF))


def _is_cyrillic(text: str) -> bool:
    other = _other(text)
    return len(CYRILLIC.findall(other)) > 0.5 * len(other) > 0


def _is_latin(text: str) -> bool:
    """Return whether almost all letters are ASCII, as in French or German, and the rest
    are letters with accents, or punctuation."""
    other = _other(text)
    n_usual = len(LATIN.findall(other)) + len(PUNCTUATION.findall(other))
    few = 3 * len(other) < len(LATIN.findall(text))
    return few and n_usual > 0.9 * len(other) > 0


# The order matters: Japanese text also looks Korean, and Korean text looks Chinese.
CANDIDATES: dict[str, Callable[[str], bool]] = {
    "utf-32": _is_utf16,
    "utf-16": _is_utf16,
    "utf-16-le": _is_utf16,
    "utf-16-be": _is_utf16,
    "euc_jp": _is_japanese,
    "cp932": _is_japanese,
    "cp949": _is_korean,
    "gb18030": _is_simplified_chinese,
    "big5": _is_traditional_chinese,
    "latin-1": _is_latin,
    "cp1252": _is_latin,
    "cp1251": _is_cyrillic,
    "koi8-r": _is_cyrillic,
}
