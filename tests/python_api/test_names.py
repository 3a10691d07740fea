"""The stub says what the extension module has, and the package has what it lists."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

from conftest import ROOT, environment

STUB = ROOT / "python" / "brant" / "_brant.pyi"
SHOW = """
import json, types
import brant
from brant import _brant
def own(thing):
    kept = ("__await__", "__aiter__", "__anext__", "__dlpack__", "__dlpack_device__", "__cuda_array_interface__",
            "__cuda_stream__")
    return sorted(n for n in vars(thing) if not n.startswith("_") or n in kept)
public = {n: v for n, v in vars(_brant).items() if not n.startswith("_")}
print(json.dumps({
    "module": sorted(public),
    "classes": {n: own(v) for n, v in public.items() if isinstance(v, type)},
    "missing": [n for n in brant.__all__ if not hasattr(brant, n)],
}))
"""
# All are Awaitable.
INNER = {
    "CallReply",
    "Collecting",
    "ConditionWait",
    "Copying",
    "Fetching",
    "HaloRun",
    "Lending",
    "Meeting",
    "Pause",
    "ProgramEnd",
    "Receiving",
    "Reply",
    "Retiring",
    "Ringing",
    "Sending",
    "Server",
    "Transferring",
}
OF_ITERATORS = {"throw", "close"}  # what `await` calls of an Awaitable


def methods(node: ast.ClassDef) -> set[str]:
    names = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    return names - {"__init__", "__bytes__", "__eq__", "__hash__"}


def test_the_stub_has_the_names_of_the_module() -> None:
    command = [sys.executable, "-c", SHOW]
    shown = json.loads(subprocess.run(command, env=environment(), text=True, capture_output=True, check=True).stdout)
    tree = ast.parse(STUB.read_text())
    declared = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert declared == set(shown["module"]) - INNER
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            has = set(shown["classes"][node.name]) - (OF_ITERATORS if node.name == "Awaitable" else set())
            assert methods(node) == has, node.name
    assert shown["missing"] == []
