"""Test what the server answers and what it refuses, without a browser."""

import json
import re

import pytest
from helpers.analysis import make_bilm
from helpers.explore import TEXT, make_explorer
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("starlette", reason="needs starlette")
pytest.importorskip("httpx", reason="needs httpx")

from starlette.testclient import TestClient

from spacy_elmo.explore.page_requests import MAX_BYTES
from spacy_elmo.explore.web_app import FILES, FOLDER, make_app

URL = "http://127.0.0.1:8765"
QUESTIONS = {
    "text": {"text": TEXT},
    "neighbors": {
        "text": TEXT,
        "sentence": 0,
        "word": 1,
        "weights": [0, 0, 1],
        "place": "typed",
    },
    "predictions": {"text": TEXT, "sentence": 0, "word": 1},
    "surprisal": {"text": TEXT, "sentence": 0},
    "heat-map": {"text": TEXT, "first": 0, "second": 1, "weights": [1, 1, 1]},
}


@pytest.fixture(scope="module")
def client():
    return TestClient(make_app(make_explorer(make_bilm())), base_url=URL)


def check_refusal(response, *statuses):
    """Check that a response is one sentence, and return it."""
    assert response.status_code in statuses, response.text
    data = response.json()
    assert set(data) == {"error", "code", "limit"}
    sentence = data["error"]
    assert 10 < len(sentence) < 200 and "\n" not in sentence
    assert "Traceback" not in sentence and 'File "' not in sentence
    return sentence


# What is served


def test_every_file_of_the_page_is_served(client):
    assert {file for file, _ in FILES.values()} >= {*FOLDER.iterdir()}
    for path, (file, kind) in FILES.items():
        response = client.get(path)
        assert response.status_code == 200
        assert response.content == file.read_bytes()
        assert response.headers["content-type"] == kind


def test_page_uses_no_file_that_is_not_served(client):
    used = set(re.findall(r'(?:href|src)="([^"]+)"', client.get("/").text))
    for path in FILES:
        if path.endswith(".js"):
            imported = re.findall(r'from "\.(/[^"]+)"', client.get(path).text)
            used.update(imported)
    assert used | {"/"} == set(FILES)


def test_page_never_makes_html_of_text():
    for path in FOLDER.glob("*.js"):
        code = path.read_text("utf8")
        for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
            assert name not in code, path
        assert not re.search(r"https?://", code)


def test_questions_are_answered(client):
    info = client.get("/api/info").json()
    assert info["lang"] == "en" and info["bilms"][0]["n_layers"] == 3
    for name, question in QUESTIONS.items():
        response = client.post(f"/api/{name}", json=question)
        assert response.status_code == 200, response.text
        assert len(response.json()) == 1


def test_layers_are_computed_as_soon_as_a_text_is_typed(monkeypatch):
    explorer = make_explorer()
    client = TestClient(make_app(explorer), base_url=URL)
    client.post("/api/text", json=QUESTIONS["text"])
    asked = []
    bilm = explorer.bilms[0].bilm
    monkeypatch.setattr(bilm, "embed", lambda new: asked.extend(new) or [])
    response = client.post("/api/neighbors", json=QUESTIONS["neighbors"])
    assert response.status_code == 200 and asked == []


def test_every_response_has_the_headers_of_a_closed_page(client):
    responses = [
        client.get("/"),
        client.get("/nothing"),
        client.post("/api/text", json={"text": "a"}),
        client.post("/api/text", json=3),
        client.get("/", headers={"host": "evil.example"}),
    ]
    assert [r.status_code for r in responses] == [200, 404, 200, 400, 403]
    for response in responses:
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert response.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in response.headers


# Who may ask


@pytest.mark.parametrize("path", ["/", "/api/info", "/main.js"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example:8765",
        "localhost.evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1:8765:80",
        "192.168.0.1:8765",
        "0.0.0.0:8765",
        "",
    ],
)
def test_other_names_are_refused(client, path, host):
    assert "Host" in check_refusal(client.get(path, headers={"host": host}), 403)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:8765", "LOCALHOST:9", "[::1]:80", "localhost"]
)
def test_names_of_this_machine_are_accepted(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200
    headers = {"host": host, "origin": f"http://{host}"}
    response = client.post("/api/text", json={"text": "a"}, headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "https://127.0.0.1:8765"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_questions_of_other_pages_are_refused(client, headers):
    for name, question in QUESTIONS.items():
        response = client.post(f"/api/{name}", json=question, headers=headers)
        assert "expected one of this page" in check_refusal(response, 403)
    own = {"origin": URL, "sec-fetch-site": "same-origin"}
    response = client.post("/api/text", json={"text": "a"}, headers=own)
    assert response.status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", ""]
)
def test_forms_of_other_pages_are_refused(client, kind):
    headers = {"content-type": kind}
    response = client.post("/api/text", content='{"text": "a"}', headers=headers)
    assert "application/json" in check_refusal(response, 415)


@pytest.mark.parametrize(
    "path",
    [
        "/../../../etc/passwd",
        "/..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/web_app.py",
        "/page/index.html",
        "/index.html",
        "//etc/passwd",
        "/style.css/",
        "/main.js%00.css",
        "/docs",
        "/api",
        "/api/info/..%2f",
    ],
)
def test_nothing_else_is_readable(client, path):
    check_refusal(client.get(path), 404)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(client, method):
    for path in ("/", "/api/text", "/api/info"):
        check_refusal(client.request(method, path), 405)
    check_refusal(client.get("/api/text"), 405)
    check_refusal(client.post("/"), 405)


# Bad questions


def post(client, name, content):
    headers = {"content-type": "application/json"}
    return client.post(f"/api/{name}", content=content, headers=headers)


@pytest.mark.parametrize("name", [*QUESTIONS])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"nothing",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"text": 1}',
        b'{"text": null}',
        b'{"text": "a", "more": 1}',
        b'{"text": "\\ud800"}',
        b'{"\\ud800": "a"}',
        b"[" * 100_000,
        b'{"text": ' + b"1" * 10_000 + b"}",
    ],
)
def test_other_json_gets_a_sentence(client, name, content):
    check_refusal(post(client, name, content), 400)


@pytest.mark.parametrize(
    "name, changed",
    [
        ("neighbors", {"sentence": -1}),
        ("neighbors", {"sentence": 1.5}),
        ("neighbors", {"sentence": True}),
        ("neighbors", {"sentence": "0"}),
        ("neighbors", {"sentence": 10**30}),
        ("neighbors", {"word": 99}),
        ("neighbors", {"place": "../../etc/passwd"}),
        ("neighbors", {"place": None}),
        ("neighbors", {"weights": []}),
        ("neighbors", {"weights": [0, 0, 0]}),
        ("neighbors", {"weights": [1, 1, float("nan")]}),
        ("neighbors", {"weights": [1, 1, float("inf")]}),
        ("neighbors", {"weights": [1, 1, -0.5]}),
        ("neighbors", {"weights": [1, 1, 1e300]}),
        ("neighbors", {"weights": "111"}),
        ("neighbors", {"weights": [1] * 10_000}),
        ("heat-map", {"first": 2}),
        ("heat-map", {"second": [0]}),
        ("surprisal", {"sentence": 7}),
        ("predictions", {"word": None}),
    ],
)
def test_wrong_values_get_a_sentence(client, name, changed):
    content = json.dumps({**QUESTIONS[name], **changed})
    check_refusal(post(client, name, content), 400)


@pytest.mark.parametrize(
    "text, code, limit",
    [
        ("x" * 10_001, "too_long", 10_000),
        ("눈" * 10_001, "too_long", 10_000),
        ("x" * 200_000, "too_long", 10_000),
        ("😀" * 1_001, "too_long_run", 1_000),
        ("a\n" * 201, "too_many_sentences", 200),
        ("a " * 2_001, "too_many_words", 2_000),
    ],
)
def test_too_long_texts_get_a_sentence(client, text, code, limit):
    response = post(client, "text", json.dumps({"text": text}))
    check_refusal(response, 413)
    assert (response.json()["code"], response.json()["limit"]) == (code, limit)


def test_longest_text_is_accepted_even_if_every_character_is_escaped(client):
    text = f"{'𐐀' * 999} " * 10  # 12 bytes each as JSON
    assert post(client, "text", json.dumps({"text": text})).status_code == 200


def test_a_body_of_unknown_length_is_refused_when_it_is_too_long(client):
    chunks = (b" " * 2**14 for _ in range(2 * MAX_BYTES // 2**14))
    headers = {"content-type": "application/json"}
    response = client.post("/api/text", content=chunks, headers=headers)
    assert "content-length" not in response.request.headers
    check_refusal(response, 413)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from([*QUESTIONS["neighbors"], "first", "x"]), inner
            )
        ),
        max_leaves=8,
    ),
    st.sampled_from([*QUESTIONS]),
)
def test_any_json_gets_an_answer_or_a_sentence(client, data, name):
    if isinstance(data, dict):
        data = {**QUESTIONS[name], **data}
    response = post(client, name, json.dumps(data))
    if response.status_code != 200:
        check_refusal(response, 400, 413)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.text(max_size=40))
def test_any_text_gets_an_answer(client, text):
    response = post(client, "text", json.dumps({"text": text}))
    sentences = response.json()["sentences"]
    assert response.status_code == 200
    written = "".join("".join(each["words"]) for each in sentences)
    assert "".join(written.split()) == "".join(text.split())
    for number in range(len(sentences)):
        question = {
            **QUESTIONS["neighbors"],
            "text": text,
            "sentence": number,
            "word": 0,
        }
        assert post(client, "neighbors", json.dumps(question)).status_code == 200


def test_a_mistake_of_the_program_gets_a_sentence(capsys, monkeypatch):
    explorer = make_explorer()
    monkeypatch.setattr(explorer, "embed", lambda *args: 1 / 0)
    client = TestClient(make_app(explorer), base_url=URL)
    response = client.post("/api/neighbors", json=QUESTIONS["neighbors"])
    sentence = check_refusal(response, 500)
    assert "division" not in sentence
    printed = "".join(capsys.readouterr())
    assert "ZeroDivisionError" in printed and "Traceback" not in printed
