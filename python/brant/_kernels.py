"""What kernels need of bells: where the header for them is, and what they get by value."""

from __future__ import annotations

import pathlib
from typing import NamedTuple

from brant._errors import NotFound


class DeviceBell(NamedTuple):
    """A bell as a kernel gets it, `brant::notify::DeviceBell`: to one of CuPy as `numpy.array(bell.device(), "u8,u8")`,
    to one of Numba or Triton as `bell.device().word`. Made by `Bell.device`, which says how long it is good.
    """

    word: int  # the address of its epoch
    number: int  # by which errors name it


class FanIn(NamedTuple):
    """What several arrivals at a bell are counted in, `brant::notify::FanIn`. Made by `Notifier.fan_in`; good until the
    notifier goes. For one bell, and one kernel at a time.
    """

    counts: int  # the address of device memory
    of: int  # arrivals for each ring


def include_dir() -> str:
    """The folder of brant's headers, for compilers of kernels: `"-I" + brant.include_dir()`, and
    `#include "brant/device/notify.cuh"`. They are those of this package, and need no other headers.

    Raises:
        NotFound: the package was installed without them.
    """
    folder = pathlib.Path(__file__).parent / "include"
    for header in ("brant/device/notify.cuh", "brant/base/simt.h"):
        if not (folder / header).is_file():
            raise NotFound(
                f"brant's headers for kernels are not with its package: there is no {folder / header}; install brant "
                "again, with `pip install`, or build it with `make build`",
                subject=header,
            )
    return str(folder)
