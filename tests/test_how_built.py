"""The page *How this is built* says what is so: its drawing matches the imports, its examples run."""

import ast
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import pandas as pd
import pytest

import bertlook
from bertlook import book, figures, positional, results
from bertlook.attention import measure
from bertlook.claims import claims, read_claims
from bertlook.corpora import Corpus
from bertlook.results import VERDICTS, Results

SOURCE = Path(bertlook.__file__).parent
PAGE = (book.root() / "book/how-built.md").read_text(encoding="utf-8")
DRAWING = re.search(r"```text\n(floor .*?)```", PAGE, flags=re.S)[1]
MODULE, TEST, PASS, FIGURE, CLAIM, READER, READER_TEST = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
(NEW_CLAIM,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)


def room(module):
    """Readers share a room."""
    return "corpora.*" if module.startswith("corpora.") else module


def imports():
    """Room → rooms that it imports when it runs; what is imported for types only is no arrow."""
    names = {path: ".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py")}
    names = {path: name.removesuffix("__init__").rstrip(".") for path, name in names.items()}
    found = {}
    for path, name in names.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for block in [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]:
            block.body = [ast.Pass()]
        for node in [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]:
            package, _, base = node.module.partition(".")
            if package == "bertlook" and name:
                whole = {".".join(filter(None, [base, alias.name])) for alias in node.names}
                modules = {each if each in names.values() else base for each in whole} - {""}
                found.setdefault(room(name), set()).update(map(room, modules))
    return {name: rooms - {name} for name, rooms in found.items()}, {room(name) for name in names.values() if name}


def drawn():
    """Room → its floor, and the arrows as pairs."""
    floors, arrows = {}, set()
    for line in DRAWING.splitlines():
        if found := re.match(r"floor (\d)   (.*)", line):
            floors |= dict.fromkeys(found[2].split(), int(found[1]))
        for origin, targets in re.findall(r"(\S+) ──▶ ([^\s,]+(?:, [^\s,]+)*)", line):
            arrows |= {(origin, target) for target in targets.split(", ")}
    return floors, arrows


def test_the_drawing_has_every_room_and_no_other():
    assert set(drawn()[0]) == imports()[1]


def test_each_arrow_drawn_is_an_import():
    found, _ = imports()
    assert {(origin, target) for origin, target in drawn()[1] if target not in found.get(origin, ())} == set()


def test_no_import_runs_up_and_along_a_floor_only_where_drawn():
    floors, arrows = drawn()
    real = {(origin, target) for origin, targets in imports()[0].items() for target in targets}
    assert {(a, b) for a, b in real - arrows if floors[b] >= floors[a]} == set()
    assert {(a, b) for a, b in arrows if floors[b] > floors[a]} == set()


def test_the_package_s_page_names_every_module_once():
    names = {each.name for each in pkgutil.walk_packages(bertlook.__path__, "bertlook.")} - {"bertlook.book"}
    named = re.findall(r"automodule:: (\S+)", (book.root() / "book/api.md").read_text(encoding="utf-8"))
    assert sorted(named) == sorted(names)


def module(monkeypatch, name, code):
    """Make a page's module importable, as the file that the page says."""
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    package, _, short = name.rpartition(".")
    monkeypatch.setattr(sys.modules[package], short, made, raising=False)
    exec(compile(code, name, "exec"), made.__dict__)
    return made


def examples(code):
    known = {}
    exec(compile(code, "test on the page", "exec"), known)
    return [function for name, function in known.items() if name.startswith("test_")]


def test_the_measure_passes_its_test_and_its_section_runs(monkeypatch, encoder, segments, maps, tmp_path):
    distance = module(monkeypatch, "bertlook.distance", MODULE)
    loop, words = examples(TEST)
    loop(encoder, segments, maps)
    words()
    known = vars(positional) | {"measure": measure, "positional": positional, "distance": distance, "figures": figures}
    known |= {"encoder": encoder, "corpus": Corpus("text", segments), "pd": pd}
    known |= {"output": Results("positional", {"results": str(tmp_path)})}
    both = (*claims("positional"), *read_claims(NEW_CLAIM, "positional"))
    monkeypatch.setattr(results, "claims", lambda chapter: both)
    known["profile"] = positional.PositionProfile(encoder.layers, encoder.heads)
    for cell in (PASS, FIGURE, CLAIM):
        exec(cell, known)
    assert known["verdicts"]["far-late"] in VERDICTS
    written = pd.read_csv(tmp_path / "positional/heads.csv")
    assert list(written.columns) == ["layer", "head", "previous", "current", "next", "distance"]
    assert eval(FIGURE, known).alt.startswith("Mean distance (tokens) by layer")


def test_the_measure_fails_its_test_if_it_is_wrong(monkeypatch, encoder, segments, maps):
    module(monkeypatch, "bertlook.distance", MODULE.replace(".abs()", ""))
    with pytest.raises(AssertionError):
        examples(TEST)[0](encoder, segments, maps)


def test_the_reader_passes_its_test(monkeypatch, tmp_path):
    module(monkeypatch, "bertlook.corpora.sheet", READER)
    (only,) = examples(READER_TEST)
    only(tmp_path)


def test_the_page_s_code_is_as_tidy_as_the_package_s(tmp_path):
    for number, code in enumerate((MODULE, TEST, READER, READER_TEST)):
        (tmp_path / f"page_{number}.py").write_text(code, encoding="utf-8")
    config = ["--config", str(book.root() / "pyproject.toml")]
    for command in (["check", "--ignore", "I001"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *config, str(tmp_path)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
