"""brant as a backend of torch.distributed:

    import brant.torch
    import torch.distributed

    torch.distributed.init_process_group("brant")

The import registers it. What connects brant to PyTorch is compiled against the PyTorch that is there, when it is first
imported, and kept for the next time; `python -m brant.torch` does so beforehand. docs/guide/pytorch.md has the rest.
"""

from __future__ import annotations

import atexit as _atexit
import sys as _sys

import torch as _torch
import torch.distributed as _distributed

from brant import _torch_build

if not _distributed.is_available():
    raise ImportError("brant.torch: this PyTorch was built without torch.distributed")
_extension = _torch_build.load()


def _create(options, _of_backend):
    return _extension.create(options)


def _end() -> None:
    # After an error that nobody caught the other processes are not waited for: they learn of it at once.
    _extension.end_all(getattr(_sys, "last_value", None) is not None)


if "brant" not in _distributed.Backend.backend_list:
    _distributed.Backend.register_backend("brant", _create, extended_api=True, devices=["cpu"])
    _atexit.register(_end)

if __name__ == "__main__":
    print(f"brant.torch is ready for PyTorch {_torch.__version__}: {_extension.__file__}")
