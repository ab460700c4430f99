import ast
import subprocess
import sys
from pathlib import Path

import spacy_elmo

PACKAGE = Path(spacy_elmo.__file__).parent
CORE = sorted((PACKAGE / "bilm").rglob("*.py"))

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
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # What leaves the folder counts by its absolute name.
            beyond = (
                node.level > 1 + len(path.relative_to(PACKAGE / "bilm").parents) - 1
            )
            yield ("spacy_elmo." if beyond else "." * node.level) + (node.module or "")


def test_core_imports_no_spacy_and_no_thinc():
    assert len(CORE) > 10
    for path in CORE:
        for name in imported(path):
            top = name.split(".")[0]
            assert top not in ("spacy", "thinc", "spacy_elmo", "cupy"), (path, name)


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


def test_h5py_is_asked_for_only_when_needed(tmp_path):
    (tmp_path / "options.json").write_text("{}")
    (tmp_path / "weights.hdf5").write_text("")
    code = f"import spacy_elmo; spacy_elmo.load_bilm({str(tmp_path)!r})"
    done = run(code, blocked=["h5py"])
    assert "spacy-elmo[hdf5]" in done.stderr


def test_spacy_commands_do_not_pay_for_ours():
    done = run(
        "import spacy.cli, spacy_elmo.cli;"
        " print([m for m in ('safetensors', 'spacy_elmo.bilm')"
        " if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_making_a_pipeline_does_not_pay_for_files_and_pretraining():
    done = run(
        "import spacy_elmo.pipeline.factory;"
        " print([m for m in ('pyarrow', 'spacy_elmo.bilm.char_encoder',"
        " 'spacy_elmo.pretrain')"
        " if m in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr
