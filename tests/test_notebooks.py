"""What a researcher meets in a notebook: the argument, in few and short cells, and nothing that two of them share."""

import ast
from itertools import combinations

import nbformat
import pytest

from bertlook import book

HOW_TO = {"new-model", "new-corpus"}
CHAPTERS = [name for name in book.chapters() if name not in {*HOW_TO, "explorer", "scorecard"}]
NOTEBOOKS = {name: nbformat.read(book.notebook_path(name), as_version=4) for name in book.chapters()}


def code(name):
    """The chapter's code cells without the one of its parameters, each as its non-empty lines."""
    cells = [cell for cell in NOTEBOOKS[name].cells if cell.cell_type == "code" and "parameters" not in book.tags(cell)]
    return [[line for line in cell.source.splitlines() if line.strip()] for cell in cells]


def tagged(name, tag):
    return [cell for cell in NOTEBOOKS[name].cells if tag in book.tags(cell)]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_cells_are_short_and_few(name):
    assert max(map(len, code(name))) <= 25
    assert sum(map(len, code(name))) <= 90


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_in_the_repository_carry_no_output(name):
    cells = [cell for cell in NOTEBOOKS[name].cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_page_opens_with_question_and_answer(name):
    first = NOTEBOOKS[name].cells[0]
    assert first.cell_type == "markdown" and first.source.startswith("# ")
    assert first.source.index("**Question.**") < first.source.index("**Answer.**") and "{glue:text}`" in first.source


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_chapter_of_the_paper_has_one_lead_and_every_notebook_one_cell_of_parameters(name):
    assert len(tagged(name, "lead")) == 1 if name in CHAPTERS else len(tagged(name, "lead")) <= 1
    (cell,) = tagged(name, "parameters")
    assert all(isinstance(line, ast.Assign) for line in ast.parse(cell.source).body)
    assert {tag for cell in NOTEBOOKS[name].cells for tag in book.tags(cell)} <= {
        "parameters",
        "lead",
        "hide-input",
        "full-width",
    }


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_functions_and_loops_over_axes_are_the_package_s(name):
    tree = ast.parse("\n".join(line for cell in code(name) for line in cell))
    assert not [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert not [cell for cell in code(name) if any("plt." in line or "# fmt:" in line for line in cell)]


def test_no_two_notebooks_share_code():
    def runs(name):
        """Runs of five lines of a cell; what opens each chapter may be alike: imports, model and data."""
        bodies = [[line for line in cell if not line.startswith(("import ", "from "))] for cell in code(name)]
        opening = [[line for line in cell if not line.startswith(("output", "encoder"))] for cell in bodies[:1]]
        return {tuple(cell[i : i + 5]) for cell in [*opening, *bodies[1:]] for i in range(len(cell) - 4)}

    shared = {pair: runs(pair[0]) & runs(pair[1]) for pair in combinations(NOTEBOOKS, 2)}
    assert not {pair: lines for pair, lines in shared.items() if lines}
