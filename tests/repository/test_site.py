"""Build the site of docs/ as contributors do. It loads nothing from other servers."""

import os
import re
import subprocess
import sys

import pytest
from helpers.no_network import REFUSE
from helpers.pages import ENGLISH, ENGLISH_ONLY, README, ROOT

PAGES = [path.stem for path in ENGLISH if path != README]
OTHER_SERVER = re.compile(
    r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site without a network."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    (folder / "refuse").mkdir()
    (folder / "refuse" / "sitecustomize.py").write_text(REFUSE, "utf8")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder / "site"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{folder / 'refuse'}{os.pathsep}{ROOT}"},
        capture_output=True,
        encoding="utf8",
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.mark.slow
def test_site_has_all_pages_in_both_languages(site):
    found = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    names = [*PAGES, *(name.removesuffix(".md") for name in ENGLISH_ONLY)]
    assert {f"{folder}{name}.html" for folder in ("", "ko/") for name in names} <= found
    for folder, lang in (("", "en"), ("ko/", "ko")):
        page = (site / f"{folder}component.html").read_text("utf8")
        assert f'lang="{lang}"' in page
        assert ("컴포넌트" in re.sub(r"<nav.*?</nav>", "", page, flags=re.S)) == (
            lang == "ko"
        )


@pytest.mark.slow
def test_site_loads_nothing_from_other_servers(site):
    for path in site.rglob("*.html"):
        assert not OTHER_SERVER.search(path.read_text("utf8")), path
    for path in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", path.read_text("utf8")), path


@pytest.mark.slow
def test_reference_has_arguments_and_results(site):
    """Check that the lines of our docstrings became tables."""
    page = (site / "api.html").read_text("utf8")
    assert "load_bilm" in page and "RETURNS" not in page
    text = re.sub(r"<[^>]+>", " ", page)
    assert re.search(r"Parameters:", text) and re.search(r"Returns:", text)


@pytest.mark.slow
def test_code_in_tables_has_no_backslashes(site):
    page = (site / "commands.html").read_text("utf8")
    assert "native|hdf5" in page and "\\|" not in page


@pytest.mark.slow
def test_links_of_the_site_stay_in_their_language(site):
    page = (site / "ko" / "component.html").read_text("utf8")
    assert ".ko.html" not in page and ".md" not in re.sub(r"https://\S+", "", page)
