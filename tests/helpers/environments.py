"""Virtual environments that share the packages of the one that runs the tests."""

import os
import site
import venv
from pathlib import Path

from helpers.pipelines import run_python


def make_environment(folder, *, with_project):
    """Create a virtual environment that can import the packages installed here.

    folder (Path): Where to create it.
    with_project (bool): Whether it can also import a spacy-elmo that is installed here
        in editable mode (with a .pth file).
    RETURNS (Path): The Python executable of the environment.
    """
    venv.create(folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    get_path = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run_python("-c", get_path, python=python).strip())
    lines = site.getsitepackages()
    if with_project:
        # A plain line with a path would ignore the .pth files in that folder.
        lines = [f"import site; site.addsitedir({path!r})" for path in lines]
    (own / "shared.pth").write_text("\n".join(lines), "utf8")
    return python


def install_wheel(python, wheel):
    """Install a wheel without its dependencies into an environment without pip."""
    install = ["install", "--no-deps", "--no-index", wheel]
    run_python("-m", "pip", "--python", python, *install)
