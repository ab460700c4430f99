"""Text that is not UTF-8, or no text at all."""

import random

import pytest
from helpers.command import call, refused
from helpers.corpora import build, sentences, write

TEXTS = {
    "cp949": "눈이 내리는 겨울 아침에 나는 학교에 갔다",
    "cp1251": "Зимой в городе выпал снег и дети пошли играть во двор",
    "koi8-r": "Зимой в городе выпал снег и дети пошли играть во двор",
    "latin-1": "L' été dernier nous avons visité une église près de la forêt",
    "cp1252": "C’était déjà l’été près de la forêt où coulait l’eau",
    "cp932": "冬の朝 雪が降っていたので 私は学校で友達とあそんだ",
    "euc_jp": "冬の朝 雪が降っていたので 私は学校で友達とあそんだ",
    "gb18030": "冬天的早晨下着雪 我去学校和朋友们一起在操场上玩",
    "big5": "冬天的早晨下著雪 我去學校和朋友們一起在操場上玩",
    "utf-16": "Snow fell on the roofs of the town",
    "utf-16-le": "눈이 내리는 겨울 아침에 나는 학교에 갔다",
    "utf-16-be": "Snow fell on the roofs of the town",
    "utf-32": "Snow fell on the roofs of the town",
}


def build_lines(folder, data, **options):
    path = write(folder / "a.txt", data)
    corpus, _ = build(folder / "corpus", path, tokenized=True, lang="xx", **options)
    return corpus


@pytest.mark.parametrize("n_lines", [1, 500])
@pytest.mark.parametrize("encoding", TEXTS)
def test_the_fitting_encoding_is_named_and_works(tmp_path, encoding, n_lines):
    text = TEXTS[encoding] + "\r\n"
    data = (text * n_lines).encode(encoding)
    with pytest.raises(ValueError) as caught:
        build_lines(tmp_path, data)
    assert str(caught.value).startswith(f"{tmp_path / 'a.txt'}: found ")
    assert f"give {encoding}, which fits" in str(caught.value)
    corpus = build_lines(tmp_path, data, encoding=encoding)
    assert sentences(corpus) == [text.split()] * n_lines
    assert not any(corpus.problems.values())


@pytest.mark.parametrize("n_bytes", [100, 10**5, 3 * 10**6])
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_random_bytes_are_no_text(tmp_path, name, n_bytes):
    path = write(tmp_path / name, random.Random(n_bytes).randbytes(n_bytes))
    with pytest.raises(
        ValueError, match="no encoding fits, so this is not text; expected"
    ):
        build(tmp_path / "corpus", path)


def test_another_encoding_asks_for_its_name(tmp_path):
    data = "Το χειμώνα χιονίζει και τα παιδιά παίζουν\n".encode("iso-8859-7")
    with pytest.raises(ValueError, match="no fitting encoding among utf-8, utf-32, "):
        build_lines(tmp_path, data * 20)


def test_a_few_broken_lines_are_counted(tmp_path):
    lines = ["눈이 내린다".encode()] * 90 + ["눈이 내린다".encode("cp949")] * 10
    corpus = build_lines(tmp_path, b"\n".join(lines))
    assert corpus.problems["lines with invalid UTF-8"] == 10
    assert len(sentences(corpus)) == 100
    with pytest.raises(ValueError, match="11 broken lines among 101"):
        build_lines(tmp_path, b"\n".join([*lines, lines[-1]]))


def test_a_short_broken_file_among_others_is_counted(tmp_path):
    write(tmp_path / "text" / "a.txt", TEXTS["cp949"].encode("cp949"))
    write(tmp_path / "text" / "b.txt", "눈이 내린다\n" * 20)
    corpus, _ = build(tmp_path / "corpus", tmp_path / "text")
    assert corpus.problems["lines with invalid UTF-8"] == 1


def test_a_long_broken_file_among_others_is_named(tmp_path):
    write(tmp_path / "text" / "a.txt", "눈이 내린다\n" * 9000)
    bad = write(tmp_path / "text" / "b.txt", TEXTS["cp949"].encode("cp949") + b"\n")
    bad.write_bytes(bad.read_bytes() * 200)
    with pytest.raises(ValueError, match=f"{bad}: found 200 broken lines among 200"):
        build(tmp_path / "corpus", tmp_path / "text")


def test_wrong_encodings_are_told(tmp_path):
    korean = "눈이 내린다\n" * 200
    with pytest.raises(ValueError, match="give utf-8, which fits"):
        build_lines(tmp_path, korean.encode(), encoding="ascii")
    with pytest.raises(ValueError, match="not in utf-16 .*BOM"):
        build_lines(tmp_path, korean.encode("utf-16-le"), encoding="utf-16")
    for unknown in ("klingon", "hex", "", "a\0"):
        with pytest.raises(ValueError, match="expected one that Python knows"):
            build_lines(tmp_path, korean.encode(), encoding=unknown)


def test_lines_that_are_no_json_are_no_text(tmp_path):
    path = write(tmp_path / "a.jsonl", "plain text\n" * 30)
    with pytest.raises(ValueError, match="30 broken lines among 30; .* JSON"):
        build(tmp_path / "corpus", path)


def test_documents_are_found_in_every_encoding(tmp_path):
    data = "눈이 내린다\n\n비가 온다\n\n".encode("utf-16")
    corpus = build_lines(tmp_path, data, encoding="utf-16")
    assert corpus.meta["train"]["n_documents"] == 2


def test_commands_take_an_encoding(tmp_path, source):
    path = write(tmp_path / "a.txt", (TEXTS["cp949"] + "\n").encode("cp949") * 20)
    out = tmp_path / "a.hdf5"
    assert "give cp949, which fits" in refused("embed", source, path, out)
    assert call("embed", source, path, out, "--encoding", "cp949").exit_code == 0
