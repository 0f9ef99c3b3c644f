"""From notebooks to a book, and the command line: ``bertlook run``, ``bertlook book``, ``bertlook show``.

What a user does wrong here, or what a notebook's cell says of it, is a :class:`bertlook.BertlookError`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import requires, version
from pathlib import Path
from typing import Annotated, Any

import nbformat
import papermill
import typer
import yaml
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from bertlook import BertlookError
from bertlook.results import escaped, write

GLUED = re.compile(r"\{glue:text\}`([^`]*)`")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="What Does BERT Look At?, rebuilt for any encoder.",
)


def root() -> Path:
    """The checkout: the folder that holds ``_toc.yml`` and ``notebooks/``."""
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


def notebook_path(chapter: str) -> Path:
    """The notebook of a chapter."""
    path = root() / "notebooks" / f"{chapter}.ipynb"
    if not path.exists():
        raise BertlookError(f"no chapter {chapter!r}. Chapters are {', '.join(chapters())}.")
    return path


def defaults(chapter: str) -> dict[str, Any]:
    """Parameters of a chapter with their defaults, plain literals in its cell tagged ``parameters``."""
    found = papermill.inspect_notebook(notebook_path(chapter))
    return {name: ast.literal_eval(parameter["default"]) for name, parameter in found.items()}


def parse(pairs: Sequence[str]) -> dict[str, Any]:
    """``name=value`` pairs of the command line; values as YAML reads them."""
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


def load_profile(profile: str) -> dict[str, dict[str, Any]]:
    """The parameters of a profile, a name in ``profiles/`` or a file: ``all`` chapters' and each chapter's own."""
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
    accepted = sorted({name for chapter in chapters() for name in defaults(chapter)})
    if typos := set(settings.get("all") or {}) - set(accepted):
        raise BertlookError(f"{path}: no chapter has a parameter {min(typos)!r}. They are {', '.join(accepted)}.")
    return {chapter: part or {} for chapter, part in settings.items()}


def parameters(chapter: str, profile: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a chapter's defaults are replaced by: the profile's values, then those given; checked."""
    settings, known = load_profile(profile), defaults(chapter)
    shared = {name: value for name, value in settings.get("all", {}).items() if name in known}
    merged = shared | settings.get(chapter, {}) | given
    for name, value in merged.items():
        if name not in known:
            raise BertlookError(f"chapter {chapter!r} has no parameter {name!r}. It has {', '.join(known)}.")
        wanted = type(known[name])
        if (wanted, type(value)) in {(float, int), (str, int), (str, float)}:
            merged[name] = wanted(value)
        elif type(value) is not wanted:
            raise BertlookError(
                f"parameter {name}={value!r} of chapter {chapter!r} has to be {wanted.__name__}, "
                f"for example {name}={known[name]!r}."
            )
    return merged


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """Tags of a notebook's cell."""
    return cell.metadata.get("tags", [])


def arrange(notebook: nbformat.NotebookNode, chapter: str) -> nbformat.NotebookNode:
    """An executed notebook as its reader gets it: the lead below the opening, the glued words in the prose."""
    words: dict[str, str] = {}

    def place(role: re.Match[str]) -> str:
        if role[1] not in words:
            raise BertlookError(
                f"notebooks/{chapter}.ipynb: nothing has glued {role[1]!r}. Glue it with output.glue, or correct the "
                f"name; glued are {', '.join(words) or 'none'}."
            )
        return escaped(words[role[1]])

    for cell in notebook.cells:
        for trace in ("execution", "papermill"):
            cell.metadata.pop(trace, None)
        if "injected-parameters" in tags(cell):
            cell.metadata["tags"] = ["injected-parameters", "hide-input"]
        shown = []
        for output in cell.get("outputs", []):
            if glued := output.get("metadata", {}).get("bertlook", {}).get("glue"):
                words |= glued
            elif output.get("name") != "stderr":  # where progress bars and warnings go: no part of the page
                shown.append(output)
        if cell.cell_type == "code":
            cell.outputs = shown
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = GLUED.sub(place, cell.source)
    notebook.cells[1:] = sorted(notebook.cells[1:], key=lambda cell: "lead" not in tags(cell))
    notebook.metadata.pop("papermill", None)
    return notebook


def run_chapter(chapter: str, profile: str, given: dict[str, Any], out: Path) -> Path:
    """Run a chapter's notebook into ``out/notebooks``; it writes its results to ``out/results``."""
    values = parameters(chapter, profile, {"results": str((out / "results").resolve())} | given)
    print(f"{chapter}: running", file=sys.stderr, flush=True)
    try:
        executed = papermill.execute_notebook(
            notebook_path(chapter),
            None,
            values,
            kernel_name="python3",
            cwd=Path.cwd(),
            progress_bar=sys.stderr.isatty(),
            config=Config(KernelManager={"transport_encryption": "auto"}),  # else the kernel warns that it is not
        )
    except PapermillExecutionError as error:
        if error.ename == BertlookError.__name__:
            raise BertlookError(error.evalue) from None
        raise
    done = out / "notebooks" / f"{chapter}.ipynb"
    write(done, nbformat.writes(arrange(executed, chapter)))
    return done


def fingerprint(chapter: str, profile: str, out: Path) -> str:
    """What a chapter's run depends on: notebook, package, results it builds upon, parameters, files, versions."""
    path, digest = notebook_path(chapter), hashlib.sha256()
    needs = nbformat.read(path, as_version=4).metadata.get("bertlook", {}).get("needs", [])
    package = sorted(p for p in Path(__file__).parent.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    for part in (path, *package, *(p for need in needs for p in sorted((out / "results" / need).glob("*.csv")))):
        if part != Path(__file__):
            digest.update(part.name.encode() + part.read_bytes())
    given = parameters(chapter, profile, {})
    local = [Path(value) for value in given.values() if isinstance(value, str) and value and Path(value).exists()]
    files = [p for path in local for p in ([path] if path.is_file() else sorted(path.rglob("*")))]
    pinned = [re.split(r"[^\w.-]", requirement)[0] for requirement in requires("bertlook") or []]
    environment = {name: os.environ.get(name, "") for name in ("BERTLOOK_DATA", "NLTK_DATA")}
    settings = [given, {name: version(name) for name in pinned}, environment, [p.stat().st_mtime for p in files]]
    digest.update(json.dumps(settings, sort_keys=True).encode())
    return digest.hexdigest()


def build(profile: str = "sample", out: Path | None = None) -> Path:
    """Run the chapters whose fingerprint changed, render the book, return the path of its first page."""
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
            write(stamp, current)
        except BertlookError as error:
            failed.append(f"{chapter}: {error}")
    if failed:
        raise BertlookError("; ".join(failed))
    return render(out, profile)


def render(out: Path, profile: str = "sample") -> Path:
    """Stage prose, executed notebooks and results as one Jupyter Book source and build it to ``out/html``.

    ``profile`` is what the pages say they were run with. The last good book stays until the new one is whole.
    """
    home, source, html, stamp = root(), out / "source", out / "html", out / "html.fingerprint"
    shutil.rmtree(source, ignore_errors=True)
    (out / "results").mkdir(parents=True, exist_ok=True)  # also where no chapter has left any
    shutil.copytree(out / "results", source / "extra" / "results")
    shutil.copytree(home / "book", source / "book", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "notebooks").mkdir()
    for chapter in chapters():
        shutil.copy(out / "notebooks" / f"{chapter}.ipynb", source / "notebooks")
    shutil.copy(home / "_toc.yml", source)
    write(source / "_config.yml", configuration(home / "_config.yml", profile))
    digest = hashlib.sha256()
    for path in sorted(p for p in source.rglob("*") if p.is_file()):
        digest.update(str(path.relative_to(source)).encode() + path.read_bytes())
    if stamp.exists() and stamp.read_text() == digest.hexdigest() and (html / "index.html").exists():
        return html / "index.html"

    stamp.unlink(missing_ok=True)
    shutil.rmtree(out / "jb", ignore_errors=True)
    # In a process of its own, since Sphinx leaves its roles and its log handlers behind.
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(source)]
    command += ["--path-output", str(out / "jb"), "--all", "-W", "--keep-going", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"})
    log = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    write(out / "render.log", log)
    if done.returncode:
        warnings = [line for line in log.splitlines() if "WARNING" in line or "ERROR" in line] or log.splitlines()[-1:]
        what = "".join(warnings[:1])[:200]
        raise BertlookError(f"the book does not render without warnings: {what}. See {out / 'render.log'}.")
    shutil.rmtree(html, ignore_errors=True)
    (out / "jb" / "_build" / "html").rename(html)
    write(stamp, digest.hexdigest())
    return html / "index.html"


def configuration(path: Path, profile: str = "sample") -> str:
    """``_config.yml`` as it stands, with the profile, and the repository that a workflow runs in, if it does."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    settings["sphinx"]["config"]["bertlook_profile"] = profile
    if name := os.environ.get("GITHUB_REPOSITORY"):
        owner, _, project = name.partition("/")
        settings["repository"]["url"] = f"https://github.com/{name}"
        address = f"https://{owner.lower()}.github.io/{project}/"  # for previews and canonical links
        settings["html"]["baseurl"] = settings["sphinx"]["config"]["ogp_site_url"] = address
    return yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)


@app.command("run")
def run_(
    chapter: Annotated[str, typer.Argument(help="surface, positional, syntax, probing, coreference, …")],
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter of the notebook.")
    ] = None,
    profile: Annotated[str, typer.Option(help="Parameters to start from: profiles/NAME.yaml.")] = "sample",
    out: Annotated[Path, typer.Option("--out", "-o", help="Where notebook and results go.")] = Path("_build/run"),
) -> None:
    """Run one chapter, with any model and text; leaves its notebook and its results."""
    notebook = run_chapter(chapter, profile, parse(parameter or []), out)
    typer.echo(f"{notebook}\n{out / 'results' / chapter}")


@app.command("book")
def book_(
    profile: Annotated[str, typer.Option(help="Parameters of all chapters: profiles/NAME.yaml, or a file.")] = "sample",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Where all goes; _build/PROFILE unless said.")] = None,
) -> None:
    """Run the chapters that changed and render the book."""
    typer.echo(f"{build(profile, out)}")


@app.command("show")
def show_(
    text: Annotated[str, typer.Argument(help="A sentence, in quotes.")] = "",
    pair: Annotated[str | None, typer.Option(help="A second text, which the model reads beside the first.")] = None,
    model: Annotated[str, typer.Option(help="minilm, an id of the model hub, or a folder.")] = "minilm",
    revision: Annotated[str, typer.Option(help="Branch, tag or commit on the hub.")] = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the page goes.")] = Path("attention.html"),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Attention explorer",
) -> None:
    """Write a page with the attention of all heads on a text: one file, which asks nothing of the network."""
    if not text.strip():  # said before the model is loaded
        raise BertlookError("no text to show. Give a sentence, such as: bertlook show 'The dog barked.'")
    for given in (text, pair or "", title):
        if any("\ud800" <= letter <= "\udfff" for letter in given):  # bytes that the shell could not decode
            raise BertlookError(f"{given!a} is not UTF-8. Give text as UTF-8.")
    if out.is_dir():
        raise BertlookError(f"{out}: a folder. Name a file for the page, for example -o {out / 'page.html'}.")
    from bertlook import encoder, explorer

    example = explorer.example(encoder.load(model, revision=revision), text, pair)
    page = explorer.page([example], title)
    write(out, page)
    layers, heads, tokens, _ = example.codes.shape
    size = f"{len(page.encode()) / 1e6:.2f} MB"
    typer.echo(f"{out}\n{size}: {layers} layers of {heads} heads on {tokens} wordpieces. Open it in a browser.")


def main() -> None:
    """Run the command; a user's mistake is one line on standard error and exit code 1."""
    try:
        app()
    except BertlookError as error:
        sys.exit(f"bertlook: {error}")
    except KeyboardInterrupt:
        sys.exit("bertlook: interrupted. Chapters that had ended are kept.")
