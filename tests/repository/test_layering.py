import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spacy_elmo

PACKAGE = Path(spacy_elmo.__file__).parent
# The other parts of the package that each part may import. `cli` may import all.
ALLOWED = {
    "about": set(),
    "files": set(),
    "fingerprints": {"regular_files"},
    "hdf5_files": set(),
    "regular_files": set(),
    "required": set(),
    "config_templates": {"bilm", "text"},
    "text": {"regular_files", "required"},
    "results": {"files", "fingerprints"},
    "bilm": {"files", "fingerprints", "hdf5_files", "regular_files"},
    "layers": {"bilm", "fingerprints", "text"},
    "pipeline": {
        "bilm",
        "files",
        "fingerprints",
        "layers",
        "regular_files",
        "text",
    },
    "parts": {"files", "fingerprints", "regular_files"},
    "embedding": {
        "bilm",
        "files",
        "fingerprints",
        "hdf5_files",
        "parts",
        "regular_files",
        "required",
    },
    "annotation": {"files", "fingerprints", "parts", "required", "text"},
    "gold": {"files", "regular_files", "text"},
    "pretrain": {
        "about",
        "bilm",
        "config_templates",
        "files",
        "fingerprints",
        "regular_files",
        "results",
        "text",
    },
    "analysis": {"bilm", "files", "fingerprints", "gold", "regular_files", "text"},
    "explore": {"analysis", "bilm", "text"},
    "compare": {
        "about",
        "bilm",
        "files",
        "fingerprints",
        "layers",
        "pipeline",
        "regular_files",
        "results",
        "text",
    },
    "report": {"about", "files", "regular_files", "results"},
    "show": {"analysis", "files", "report"},
    "project": {"bilm", "files", "fingerprints", "gold", "text"},
}
# Packages and modules that a part must not import.
FORBIDDEN = {
    "bilm": ("spacy", "thinc", "cupy"),
    "layers": ("spacy.language", "spacy.pipeline"),
    "report": ("torch", "thinc"),
    "explore": ("torch", "thinc"),
}


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Block())
"""


def run(code, blocked=()):
    code = BLOCKED.format(blocked=tuple(blocked)) + code
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def imported(path):
    """List the absolute names of all modules that a file imports, also in functions."""
    package = path.relative_to(PACKAGE.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            if node.level:
                module = [*package[: len(package) - node.level + 1], *module]
            yield ".".join(module)
            # In `from . import x`, x may be a module.
            yield from (".".join([*module, alias.name]) for alias in node.names)


@pytest.mark.parametrize("part", [*ALLOWED])
def test_each_part_imports_only_what_lies_below_it(part):
    files = sorted((PACKAGE / part).rglob("*.py")) or [PACKAGE / f"{part}.py"]
    for path in files:
        for name in imported(path):
            first, _, rest = name.partition(".")
            if first == "spacy_elmo":
                other = rest.split(".")[0]
                ours = other in ALLOWED or other == "cli"
                assert not ours or other in {part, *ALLOWED[part]}, (path, name)
            for forbidden in FORBIDDEN.get(part, ()):
                assert f"{name}.".startswith(f"{forbidden}.") is False, (path, name)


def test_every_part_has_a_place():
    found = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    found |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert found == {*ALLOWED, "cli"}


@pytest.mark.slow
def test_core_works_where_spacy_and_thinc_do_not_exist(tmp_path):
    code = f"""
from spacy_elmo.bilm import BiLM, BiLMConfig, BytesConfig, LSTMConfig, load_bilm
config = BiLMConfig(BytesConfig(char_dim=2, filters=[[1, 3]]), LSTMConfig(4, 3))
BiLM(config).save({str(tmp_path)!r})
print(load_bilm({str(tmp_path)!r}).embed([["A", "sentence"]])[0].shape)
"""
    done = run(code, blocked=["spacy", "thinc", "h5py"])
    assert done.stdout.strip() == "(3, 2, 6)", done.stderr


def test_importing_the_package_is_cheap():
    done = run(
        "import spacy_elmo; print([m for m in ('torch', 'h5py', 'spacy')"
        " if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
def test_h5py_is_asked_for_only_when_needed(tmp_path):
    (tmp_path / "options.json").write_text("{}")
    (tmp_path / "weights.hdf5").write_text("")
    code = f"import spacy_elmo; spacy_elmo.load_bilm({str(tmp_path)!r})"
    done = run(code, blocked=["h5py"])
    assert "spacy-elmo[hdf5]" in done.stderr


@pytest.mark.slow
def test_spacy_commands_do_not_pay_for_ours():
    done = run(
        "import spacy.cli, spacy_elmo.cli;"
        " print([m for m in ('safetensors', 'spacy_elmo.bilm')"
        " if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
def test_making_a_pipeline_does_not_pay_for_files_and_pretraining():
    done = run(
        "import spacy_elmo.pipeline.factory;"
        " print([m for m in ('pyarrow', 'spacy_elmo.bilm.char_encoder',"
        " 'spacy_elmo.pretrain')"
        " if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr
