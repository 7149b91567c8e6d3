# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tutorial notebook runs, with the outputs that are stored in it."""

import contextlib
import io
import json
import pathlib

import pytest

NOTEBOOK = pathlib.Path(__file__).parents[2] / "docs" / "tutorial" / "python.ipynb"
pytest.importorskip("IPython", reason="IPython is not installed")
pytestmark = pytest.mark.skipif(not NOTEBOOK.exists(), reason="the sources are not here")


def html(shell, value):
    """HTML that a notebook shows for a value, or None."""
    return None if value is None else shell.display_formatter.format(value)[0].get("text/html")


@pytest.fixture(scope="module")
def ran():
    from IPython.core.interactiveshell import InteractiveShell

    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    results = []
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                result = shell.run_cell("".join(cell["source"]))
            results.append((cell, result, text.getvalue(), html(shell, result.result)))
    yield results
    InteractiveShell.clear_instance()


def test_cells_print_what_is_stored(ran):
    for cell, result, printed, _ in ran:
        source = "".join(cell["source"])
        if "kernel wrong" in source:
            assert not result.success and "o[0] = 1u" in printed and "^" in printed and "Fix:" in printed
            assert "Traceback" not in printed
            continue
        assert result.success, source
        stored = "".join("".join(o["text"]) for o in cell["outputs"])
        if stored:
            assert printed.startswith(stored), source


def test_values_display_as_tables_and_pictures(ran):
    shown = {"".join(cell["source"]).splitlines()[-1]: text for cell, _, _, text in ran if text}
    assert "input_output" in shown["saxpy"]
    assert "max_workgroup" in shown['vyre.device("ref")']
    assert "<svg" in shown["graph.plan"] and "3 groups" in shown["graph.plan"]
    assert any("data:image/png" in text for text in shown.values())
