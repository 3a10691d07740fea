"""One process of a job: start.py FILE FUNCTION LOOP runs an async function of a test file under one of the loops."""

import asyncio
import importlib.util
import pathlib
import sys

import brant

_, file, name, loop = sys.argv
sys.path.insert(0, str(pathlib.Path(file).parent))
specification = importlib.util.spec_from_file_location("body", file)
module = importlib.util.module_from_spec(specification)
sys.modules["body"] = module
specification.loader.exec_module(module)
body = getattr(module, name)
if loop == "none":
    body()
else:
    (asyncio.run if loop == "asyncio" else brant.run)(body())
