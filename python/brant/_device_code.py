"""What brant.numba and brant.triton hand to compilers of kernels. Nothing of those is needed here."""

from __future__ import annotations

import pathlib
import re

from brant._kernels import include_dir

# Numba's own convention: the result goes through the first argument, and 0 says that nothing was raised.
_FOR_NUMBA = """
#include "brant/device/notify.cuh"

namespace {
__device__ brant::notify::DeviceBell bell_at(long long word) {
  return {reinterpret_cast<brant::notify::Word*>(word), 0};
}
}  // namespace

extern "C" __device__ int brant_ring(void*, long long word, long long epoch) {
  brant::notify::ring(bell_at(word), epoch, brant::notify::Thread{});
  return 0;
}

extern "C" __device__ int brant_arrive(void*, long long word, long long counts, long long of, long long epoch) {
  const brant::notify::FanIn fan_in{reinterpret_cast<brant::notify::Word*>(counts), brant::notify::Word(of)};
  brant::notify::arrive(bell_at(word), fan_in, epoch, brant::notify::Thread{});
  return 0;
}

extern "C" __device__ int brant_wait(int* rung, long long word, long long epoch, long long patience_ns) {
  brant::notify::KernelControl control;
  control.patience_ns = patience_ns;
  *rung = brant::notify::wait(control, bell_at(word), epoch, brant::notify::Thread{}) == brant::notify::Waited::rung;
  return 0;
}
"""

# The first thread of a program rings: $1 the word, $2 the epoch. $0 is a result that nobody wants.
TRITON_RING = """
{
  .reg .pred first;
  .reg .b32 thread;
  mov.u32 thread, %tid.x;
  setp.eq.u32 first, thread, 0;
  @first st.release.sys.u64 [$1], $2;
  mov.b32 $0, 0;
}
"""

# The first thread looks, the others wait for its verdict, $0: $1 the word, $2 the epoch, $3 nanoseconds, 0 without end.
TRITON_WAIT = """
{
  .reg .pred first, come, early, said;
  .reg .b32 thread, rung;
  .reg .b64 begun, now, seen, ahead;
  mov.b32 rung, 0;
  mov.u32 thread, %tid.x;
  setp.eq.u32 first, thread, 0;
  @!first bra MEET;
  mov.u64 begun, %globaltimer;
LOOK:
  ld.acquire.sys.u64 seen, [$1];
  sub.s64 ahead, seen, $2;
  setp.ge.s64 come, ahead, 0;
  selp.b32 rung, 1, 0, come;
  @come bra MEET;
  nanosleep.u32 64;
  setp.eq.u64 early, $3, 0;
  @early bra LOOK;
  mov.u64 now, %globaltimer;
  sub.u64 now, now, begun;
  setp.le.u64 early, now, $3;
  @early bra LOOK;
MEET:
  setp.ne.b32 said, rung, 0;
  bar.red.or.pred said, 0, said;
  selp.b32 $0, 1, 0, said;
}
"""

_LINE = re.compile(r'^#include "(brant/[^"]+)"$|^#pragma once$', re.MULTILINE)


def _as_one(text: str, folder: pathlib.Path, known: set[str]) -> str:
    """A text and the headers of brant that it includes: no compiler has to be told where they are."""

    def put_in(line: re.Match[str]) -> str:
        header = line[1]
        if header is None or header in known:
            return ""
        known.add(header)
        return _as_one((folder / header).read_text(), folder, known)

    return _LINE.sub(put_in, text)


def numba_source() -> str:
    """The functions that brant.numba declares, in CUDA C++."""
    return _as_one(_FOR_NUMBA, pathlib.Path(include_dir()), set())
