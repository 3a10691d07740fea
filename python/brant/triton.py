"""Bells in kernels of Triton:

    from brant.triton import arrive, ring, wait

    @triton.jit
    def step(face, packed, go, epoch, CELLS: tl.constexpr):
        came = wait(go, epoch, 1_000_000_000)
        tl.store(face + tl.arange(0, CELLS), epoch)
        ring(packed, epoch)

    step[(1,)](face, packed.device().word, go.device().word, epoch, CELLS=1024)

A program calls them as a whole. Memory is ordered as brant/device/notify.cuh orders it; docs/guide/notify.md has the
rest. Not for kernels with specialized warps.
"""

from __future__ import annotations

import triton as _triton
import triton.language as tl

from brant import _device_code

_RING = tl.constexpr(_device_code.TRITON_RING)
_WAIT = tl.constexpr(_device_code.TRITON_WAIT)


@_triton.jit
def _store_release(word, epoch):
    tl.inline_asm_elementwise(_RING, "=r,l,l", [word, epoch], dtype=tl.int32, is_pure=False, pack=1)


@_triton.jit
def ring(word, epoch):
    """What this program wrote before is there for whoever sees the epoch. `word` is `bell.device().word`."""
    tl.debug_barrier()
    _store_release(tl.full((), word, tl.int64), tl.full((), epoch, tl.int64))


@_triton.jit
def wait(word, epoch, patience_ns):
    """Whether the epoch has come, and with it what its ringer wrote: False when so many nanoseconds are over, and then
    the program should end. 0: no end."""
    word = tl.full((), word, tl.int64)
    epoch = tl.full((), epoch, tl.int64)
    patience_ns = tl.full((), patience_ns, tl.int64)
    rung = tl.inline_asm_elementwise(
        _WAIT, "=r,l,l,l", [word, epoch, patience_ns], dtype=tl.int32, is_pure=False, pack=1
    )
    return rung != 0


@_triton.jit
def _arrived(counts, epoch):
    return (counts >> ((epoch & 3) * 16)) & 0xFFFF


@_triton.jit
def arrive(word, counts, of, epoch):
    """The last of `of` programs rings for all; nobody waits. `counts` and `of` are a brant.FanIn. Each program takes
    part in each epoch, and may be two ahead of the others."""
    word = tl.full((), word, tl.int64)
    epoch = tl.full((), epoch, tl.int64)
    of = tl.full((), of, tl.int64)
    place = tl.full((), counts, tl.int64).to(tl.pointer_type(tl.int64))
    one = tl.full((), 1, tl.int64)
    tl.debug_barrier()
    add = one << ((epoch & 3) * 16)
    seen = tl.atomic_add(place, add, sem="acq_rel", scope="gpu") + add
    # An epoch before this one that has not rung: who rings that one finds this one complete, and goes on with it.
    rings = (_arrived(seen, epoch) == of) & (_arrived(seen, epoch - 1) == 0)
    while rings:
        _store_release(word, epoch)
        back = -(of << ((epoch & 3) * 16))
        seen = tl.atomic_add(place, back, sem="acq_rel", scope="gpu") + back
        epoch += 1
        rings = _arrived(seen, epoch) == of
