"""Test the options of `spacy elmo explore`, and how it starts and ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from helpers.analysis import make_bilm, make_index, random_sentences, save
from helpers.command import call, refused, text
from helpers.explore import make_bilm_with_softmax
from helpers.pipelines import run_python

refusal = partial(refused, "explore")
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "explore.py"


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_package_is_named(source, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert "pip install 'spacy-elmo[explore]'" in refusal(source)


def test_a_used_port_gets_a_sentence(source):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refusal(source, "--port", port)
    assert f"port {port} is used by another program; choose another" in said


def test_unusable_options_get_a_sentence(source, tmp_path):
    port = ["--port", 0]
    assert "no such file or folder" in refusal(tmp_path / "nothing", *port)
    assert "no such file or folder" in refusal(source, "--other", "nothing", *port)
    assert "found no complete index" in refusal(source, "--index", tmp_path, *port)
    assert "found the language 'qq'" in refusal(source, "--lang", "qq", *port)
    index = make_index(make_bilm(5), tmp_path / "text", random_sentences(5)).folder
    assert "the index of another biLM" in refusal(source, "--index", index, *port)
    other = save(make_bilm(5), tmp_path / "other")
    twice = ["--other", other, "--index", index, "--index", index]
    assert "found a second --index of a biLM" in refusal(source, *twice, *port)
    assert call("explore", source, "--port", 70000).exit_code == 2


def test_help_names_the_options():
    done = call("explore", "--help")
    assert done.exit_code == 0
    assert all(name in text(done) for name in ("--other", "--index", "--port"))


@pytest.mark.slow
def test_page_is_served_on_this_machine_until_ctrl_c(bilm, source, tmp_path):
    index = make_index(bilm, tmp_path / "text", random_sentences(5)).folder
    other = save(make_bilm_with_softmax(), tmp_path / "other")
    command = [sys.executable, "-m", "spacy", "elmo", "explore", source, "--port", "0"]
    process = subprocess.Popen(
        [*command, "--other", other, "--index", index],
        env={**os.environ, "PYTHONIOENCODING": "utf8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf8",
    )
    try:
        said = ""
        while process.poll() is None and "Ctrl-C" not in said:
            said += process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:(\d+)", said)
        assert url, said
        with urlopen(f"{url[0]}/api/info") as response:
            info = json.load(response)
            assert "server" not in response.headers
        first, second = info["bilms"]
        assert first["name"] == str(source) and second["name"] == str(other)
        assert [first["has_softmax"], second["has_softmax"]] == [False, True]
        assert first["n_corpus_words"] > 0 and second["n_corpus_words"] is None
        headers = {"content-type": "application/json"}
        data = json.dumps({"text": "눈이 온다. Snow."}).encode()
        with urlopen(Request(f"{url[0]}/api/text", data, headers)) as response:
            assert len(json.load(response)["sentences"]) == 2
        assert find_addresses(int(url[1])) == ["127.0.0.1"]
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[0]
    assert process.returncode == 0, rest
    assert "Traceback" not in said + rest and rest.strip() == ""


def find_addresses(port):
    """List the addresses of this machine at which a port is open."""
    own = {"127.0.0.1", "127.0.0.2", *socket.gethostbyname_ex(socket.gethostname())[2]}
    found = []
    for address in sorted(own):
        with socket.socket() as client:
            client.settimeout(5)
            if client.connect_ex((address, port)) == 0:
                found.append(address)
    return found


@pytest.mark.slow
def test_the_benchmark_asks_everything_that_the_page_asks(tmp_path):
    from spacy_elmo.explore.web_app import QUESTIONS

    path = tmp_path / "explore.json"
    printed = run_python(BENCHMARK, "--sentences", 2, "--json", path)
    figures = json.loads(path.read_text("utf8"))
    assert {f"/api/{name}" for name in figures} == {*QUESTIONS}
    assert all(len(values) == 2 and min(values) > 0 for values in figures.values())
    assert all(f"{name}: median" in printed for name in figures)
