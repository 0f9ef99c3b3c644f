"""From notebooks to a book: run what changed, then render."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import papermill
import yaml
from papermill.exceptions import PapermillExecutionError

from bertlook import BertlookError
from bertlook.encoder import first_line
from bertlook.results import write

VERSIONED = ("torch", "transformers", "papermill", "spacy", "gensim", "scikit-learn", "matplotlib", "seaborn")


def root() -> Path:
    """The checkout: the folder that holds ``_toc.yml`` and ``notebooks/``.

    Raises
    ------
    BertlookError
        Neither the current folder nor that of the package is in a checkout.
    """
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / "_toc.yml").exists() and (folder / "notebooks").is_dir():
                return folder
    raise BertlookError("no checkout of bertlook here. Change to its folder, the one that holds _toc.yml.")


def chapters() -> list[str]:
    """Names of the notebooks, in the order of the table of contents."""
    toc = yaml.safe_load((root() / "_toc.yml").read_text(encoding="utf-8"))
    files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    return [Path(file).name for file in files if file.startswith("notebooks/")]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """Tags of a notebook's cell."""
    return cell.metadata.get("tags", [])


def parse(pairs: Sequence[str]) -> dict[str, Any]:
    """``name=value`` pairs of the command line; values as YAML reads them.

    Raises
    ------
    BertlookError
        A pair has no ``=``.
    """
    parsed = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise BertlookError(f"parameter {pair!r} has no '='. Write it as name=value, for example segments=200.")
        try:
            parsed[name.strip()] = yaml.safe_load(value) if value else ""
        except yaml.YAMLError:
            parsed[name.strip()] = value
    return parsed


def load_profile(profile: str) -> dict[str, Any]:
    """The parameters of a profile, a name in ``profiles/`` or a file: ``all`` chapters' and each chapter's own.

    Raises
    ------
    BertlookError
        There is no such profile, or it is not a mapping, or it names a chapter that does not exist.
    """
    path = Path(profile) if profile.endswith((".yaml", ".yml")) else root() / "profiles" / f"{profile}.yaml"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in (root() / "profiles").glob("*.yaml")))
        raise BertlookError(f"{path}: no such profile. Choose one of {known}, or give a .yaml file.")
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise BertlookError(f"{path}:{line}: not YAML ({getattr(error, 'problem', error)}). Correct it.") from error
    if not isinstance(settings, dict) or not all(isinstance(part or {}, dict) for part in settings.values()):
        raise BertlookError(f"{path}: not a mapping of 'all' and chapters to parameters. See profiles/sample.yaml.")
    if unknown := set(settings) - {"all", *chapters()}:
        raise BertlookError(f"{path}: no chapter {min(unknown)!r}. Chapters are {', '.join(chapters())}.")
    accepted = {name for chapter in chapters() for name in defaults(chapter)}
    if typos := set(settings.get("all") or {}) - accepted:
        raise BertlookError(
            f"{path}: no chapter has a parameter {min(typos)!r}. They are {', '.join(sorted(accepted))}."
        )
    return settings


def notebook_path(chapter: str) -> Path:
    """The notebook of a chapter.

    Raises
    ------
    BertlookError
        There is none.
    """
    path = root() / "notebooks" / f"{chapter}.ipynb"
    if not path.exists():
        raise BertlookError(f"no chapter {chapter!r}. Chapters are {', '.join(chapters())}.")
    return path


def defaults(chapter: str) -> dict[str, Any]:
    """Parameters of a chapter with their defaults, from its cell tagged ``parameters``."""
    cells = nbformat.read(notebook_path(chapter), as_version=4).cells
    code = next(cell.source for cell in cells if "parameters" in tags(cell))
    values: dict[str, Any] = {}
    exec(compile(code, f"{chapter}.ipynb", "exec"), {}, values)
    return values


def parameters(chapter: str, profile: str, given: dict[str, Any]) -> dict[str, Any]:
    """All parameters of a chapter: its defaults, then the profile's, then those given; checked.

    Raises
    ------
    BertlookError
        A name that the chapter does not know, or a value of another type than its default.
    """
    settings = load_profile(profile)
    known = defaults(chapter)
    shared = {name: value for name, value in (settings.get("all") or {}).items() if name in known}
    merged: dict[str, Any] = {}
    for name, value in (shared | (settings.get(chapter) or {}) | given).items():
        if name not in known:
            raise BertlookError(f"chapter {chapter!r} has no parameter {name!r}. It has {', '.join(known)}.")
        wanted = type(known[name])
        if wanted is float and type(value) is int:
            value = float(value)
        if wanted is str and type(value) in (int, float):
            value = str(value)
        if type(value) is not wanted:
            raise BertlookError(
                f"parameter {name}={value!r} of chapter {chapter!r} has to be {wanted.__name__}, "
                f"for example {name}={known[name]!r}."
            )
        merged[name] = value
    return merged


def run_chapter(chapter: str, profile: str, given: dict[str, Any], out: Path) -> Path:
    """Run a chapter's notebook into ``out/notebooks``; it writes its results to ``out/results``.

    Raises
    ------
    BertlookError
        A user's mistake inside the notebook, in the words of the cell that found it.
    """
    path = notebook_path(chapter)
    values = parameters(chapter, profile, given)
    if "results" not in given:
        values["results"] = str((out / "results").resolve())
    done = out / "notebooks" / f"{chapter}.ipynb"
    aside = done.with_suffix(".running.ipynb")
    aside.parent.mkdir(parents=True, exist_ok=True)
    print(f"{chapter}: running", file=sys.stderr, flush=True)
    try:
        papermill.execute_notebook(
            str(path), str(aside), values, kernel_name="python3", cwd=str(Path.cwd()), progress_bar=sys.stderr.isatty()
        )
    except PapermillExecutionError as error:
        if error.ename == BertlookError.__name__:
            raise BertlookError(error.evalue) from None
        raise
    executed = nbformat.read(aside, as_version=4)
    # The answer is computed last and read first.
    answer = [cell for cell in executed.cells if "answer" in tags(cell)]
    rest = [cell for cell in executed.cells if "answer" not in tags(cell)]
    executed.cells = rest[:1] + answer + rest[1:]
    for cell in executed.cells:
        cell.metadata.pop("execution", None)
        cell.metadata.pop("papermill", None)
        if "injected-parameters" in tags(cell):
            cell.metadata["tags"] = ["injected-parameters", "hide-input"]
        if cell.cell_type == "code":  # progress bars and warnings are for the terminal, not for the page
            cell.outputs = [o for o in cell.outputs if o.output_type != "stream" or o.name != "stderr"]
    executed.metadata.pop("papermill", None)
    write(done, nbformat.writes(executed))
    aside.unlink()
    return done


def fingerprint(chapter: str, profile: str, out: Path) -> str:
    """What a chapter's run depends on: notebook, parameters, package, versions, and results it builds upon."""
    notebook = nbformat.read(notebook_path(chapter), as_version=4)
    digest = hashlib.sha256()
    parts: list[Path] = [notebook_path(chapter), *sorted(Path(__file__).parent.rglob("*"))]
    for upstream in notebook.metadata.get("bertlook", {}).get("needs", []):
        parts += sorted((out / "results" / upstream).glob("*.csv"))
    for part in parts:
        if part.is_file() and "__pycache__" not in part.parts and part.name not in {"cli.py", "book.py"}:
            digest.update(part.name.encode() + part.read_bytes())
    given = parameters(chapter, profile, {})
    local = [Path(value) for value in given.values() if isinstance(value, str) and value and Path(value).exists()]
    files = [p for path in local for p in ([path] if path.is_file() else sorted(path.rglob("*")))]
    environment = {name: os.environ.get(name, "") for name in ("BERTLOOK_DATA", "NLTK_DATA")}
    settings = [given, {name: version(name) for name in VERSIONED}, environment, [p.stat().st_mtime for p in files]]
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def build(profile: str = "sample", out: Path | None = None) -> Path:
    """Run the chapters whose fingerprint changed, render the book, return the path of its first page.

    Raises
    ------
    BertlookError
        A user's mistake, or a page that does not render without warnings.
    """
    out = (out or root() / "_build" / Path(profile).stem).resolve()
    failed = []
    for chapter in chapters():
        stamp = out / "notebooks" / f"{chapter}.fingerprint"
        current = fingerprint(chapter, profile, out)
        if stamp.exists() and stamp.read_text() == current and stamp.with_suffix(".ipynb").exists():
            continue
        stamp.unlink(missing_ok=True)
        try:
            run_chapter(chapter, profile, {}, out)
        except BertlookError as error:
            failed.append(f"{chapter}: {error}")
            continue
        write(stamp, current)
    if failed:
        raise BertlookError("; ".join(failed))
    return render(out, profile)


def render(out: Path, profile: str = "sample") -> Path:
    """Stage prose, executed notebooks and results as one Jupyter Book source and build it to ``out/html``.

    ``profile`` is what the pages say they were run with.
    """
    source, home = out / "source", root()
    wanted: dict[Path, Path] = {source / name: home / name for name in ("_toc.yml",)}
    wanted |= {source / p.relative_to(home): p for p in (home / "book").rglob("*") if p.is_file()}
    wanted |= {source / "notebooks" / f"{name}.ipynb": out / "notebooks" / f"{name}.ipynb" for name in chapters()}
    wanted |= {source / "extra" / "results" / p.relative_to(out / "results"): p for p in (out / "results").rglob("*.*")}
    config = configuration(home / "_config.yml", profile)
    digest = hashlib.sha256(config.encode())
    for target, origin in sorted(wanted.items()):
        digest.update(str(target.relative_to(source)).encode() + origin.read_bytes())
    stamp, html = out / "html.fingerprint", out / "html"
    if stamp.exists() and stamp.read_text() == digest.hexdigest() and (html / "index.html").exists():
        return html / "index.html"

    stamp.unlink(missing_ok=True)
    for stale in [p for p in source.rglob("*") if p.is_file() and p not in wanted]:
        stale.unlink()
    for target, origin in wanted.items():
        if not target.exists() or target.read_bytes() != origin.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, target)
    write(source / "_config.yml", config)
    (source / "extra").mkdir(exist_ok=True)  # also where no chapter has left results
    shutil.rmtree(out / "jb", ignore_errors=True)  # pages that are no more
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        str(source),
        "--path-output",
        str(out / "jb"),
        "-W",
    ]
    done = subprocess.run(
        [*command, "--all", "--keep-going", "-q"], capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"}
    )
    log = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    write(out / "render.log", log)
    if done.returncode:
        warnings = [line for line in log.splitlines() if "WARNING" in line or "ERROR" in line]
        what = first_line(RuntimeError(warnings[0] if warnings else done.stderr))
        raise BertlookError(f"the book does not render without warnings: {what}. See {out / 'render.log'}.")
    aside = out / "html.new"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(
        out / "jb" / "_build" / "html",
        aside,
        ignore=shutil.ignore_patterns(".buildinfo*", "objects.inv", "*macros.html"),
    )
    shutil.rmtree(html, ignore_errors=True)
    aside.rename(html)
    write(stamp, digest.hexdigest())
    return html / "index.html"


def configuration(path: Path, profile: str = "sample") -> str:
    """``_config.yml`` as it stands, with the profile, and the repository that a workflow runs in, if it does."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings["sphinx"]["config"]["bertlook_profile"] = profile
    if name := os.environ.get("GITHUB_REPOSITORY"):
        owner, _, project = name.partition("/")
        settings["repository"]["url"] = f"https://github.com/{name}"
        settings["html"]["baseurl"] = (
            f"https://{owner.lower()}.github.io/{project}/"  # for previews and canonical links
        )
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)
