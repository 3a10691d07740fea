"""brant as a backend of torch.distributed:

    import brant.torch
    import torch.distributed

    torch.distributed.init_process_group("brant")

The import registers it. What connects brant to PyTorch is compiled against the PyTorch that is there, when it is first
imported, and kept for the next time; `python -m brant.torch` does so beforehand. docs/guide/pytorch.md has the rest.
"""

from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys

import torch as _torch
import torch.distributed as _distributed

from brant import _torch_build

if not _distributed.is_available():
    raise ImportError("brant.torch: this PyTorch was built without torch.distributed")
_extension = _torch_build.load()


def _gpu(options) -> int:
    """The GPU of this process: what the program said, or, where it has not said anything yet, that of the local rank,
    as torchrun counts. -1: none."""
    if _os.environ.get("BRANT_GPU") == "none" or not _torch.cuda.is_available():
        return -1
    bound = getattr(getattr(options, "process_group", None), "bound_device_id", None)  # PyTorch 2.11 does not say
    if bound is not None and bound.type == "cuda":
        return _torch.cuda.current_device() if bound.index is None else bound.index
    if _torch.cuda.is_initialized():
        return _torch.cuda.current_device()
    local_rank, processes = (int(_os.environ.get(name, "-1")) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    return local_rank if local_rank < processes <= _torch.cuda.device_count() else -1


def _create(options, _of_backend):
    return _extension.create(options, _gpu(options))


def _end() -> None:
    # After an error that nobody caught the other processes are not waited for: they learn of it at once.
    _extension.end_all(getattr(_sys, "last_value", None) is not None)


if "brant" not in _distributed.Backend.backend_list:
    # Where there is no GPU, PyTorch's own parts would ask for its streams.
    _devices = ["cpu", "cuda"] if _torch.cuda.is_available() else ["cpu"]
    _distributed.Backend.register_backend("brant", _create, extended_api=True, devices=_devices)
    _atexit.register(_end)

if __name__ == "__main__":
    print(f"brant.torch is ready for PyTorch {_torch.__version__}: {_extension.__file__}")
