"""One process of a test: start.py FILE FUNCTION [BACKEND [TIMEOUT_S]] runs a function in a process group."""

import datetime
import importlib.util
import os
import pathlib
import sys

import brant.torch  # noqa: F401, registers the backend
import torch
import torch.distributed

file, name, backend, timeout = [*sys.argv[1:], *("brant", "200")[len(sys.argv) - 3 :]]
sys.path.insert(0, str(pathlib.Path(file).parent))
specification = importlib.util.spec_from_file_location("body", file)
module = importlib.util.module_from_spec(specification)
sys.modules["body"] = module
specification.loader.exec_module(module)
torch.set_num_threads(1)
if torch.cuda.is_available():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
if backend != "none":
    torch.distributed.init_process_group(backend, timeout=datetime.timedelta(seconds=float(timeout)))
getattr(module, name)()
if backend != "none":
    torch.distributed.destroy_process_group()
