"""What kernels call for bells: the PTX that comes of it has the memory order that the protocol needs, and no more."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from device_compilers import SYNC, by_kernel, by_nvrtc, find_nvrtc, find_tool

ROOT = Path(__file__).parents[2]

KERNELS = """
#include "brant/pgas/device_window.cuh"
#include "brant/pgas/global_ptr.h"
using namespace brant::notify;
using brant::simt::GpuThread;
using brant::simt::Word;
#define KERNEL extern "C" __global__ void
KERNEL ring_thread(DeviceBell bell, Word epoch) { ring(bell, epoch); }
KERNEL ring_block(DeviceBell bell, Word epoch) { ring(bell, epoch, Block{}); }
KERNEL ring_alone(DeviceBell bell, Word epoch) { ring_relaxed(bell, epoch); }
KERNEL wait_block(KernelControl control, DeviceBell bell, Word epoch) { wait(control, bell, epoch); }
KERNEL look(DeviceBell bell, Word epoch, bool* seen) { *seen = test(bell, epoch); }
KERNEL fan_in(DeviceBell bell, FanIn fan_in, Word epoch) { arrive(bell, fan_in, epoch); }
KERNEL put_block(DeviceBell bell, Word epoch, void* to, const void* from, Word bytes) {
  put_and_ring(bell, epoch, to, from, bytes);
}
KERNEL send_lines(Line* to, const Word* words, Word count) {
  put_lines(to, 1, words, count, Warp{});
}
KERNEL receive_lines(KernelControl control, const Line* from, Word* words, Word count) {
  take_lines(control, from, 1, words, count);
}
KERNEL live(KernelControl control) {
  GpuThread machine;
  KernelLife life(machine, control);
  Item item;
  while (life.next(item)) life.done();
  life.leave();
}
KERNEL put_in_window(KernelControl control, brant::pgas::DeviceWindow window, unsigned member, const void* from) {
  GpuThread machine;
  brant::pgas::put_notify(machine, control, window, member, 0, from, 4096, 8192, 1);
  brant::pgas::barrier(machine, control, window, 16384, 1);
}
KERNEL get_in_window(KernelControl control, brant::pgas::DeviceWindow window, unsigned member, void* to) {
  GpuThread machine;
  brant::pgas::get(machine, control, window, member, 0, to, 4096);
}
template <typename T>
__device__ void all_atomics(KernelControl control, const brant::pgas::DeviceWindow& window, brant::AtomicOp which,
                            T* v) {
  GpuThread machine;
  brant::pgas::fetch(machine, control, window, 1, 64, which, v[0], v[1]);
  brant::pgas::fetch_add_relaxed(machine, control, window, 1, 64, v[0], v[2]);
  brant::pgas::compare_swap(machine, control, window, 1, 64, v[0], v[1], v[3]);
  brant::pgas::atomic<T>(machine, control, window, 1, 64, brant::AtomicOp::store, v[0]);
}
KERNEL change_i32(KernelControl control, brant::pgas::DeviceWindow window, brant::AtomicOp which, int* v) {
  all_atomics(control, window, which, v);
}
KERNEL change_u32(KernelControl control, brant::pgas::DeviceWindow window, brant::AtomicOp which, unsigned* v) {
  all_atomics(control, window, which, v);
}
KERNEL change_i64(KernelControl control, brant::pgas::DeviceWindow window, brant::AtomicOp which, long long* v) {
  all_atomics(control, window, which, v);
}
KERNEL change_u64(KernelControl control, brant::pgas::DeviceWindow window, brant::AtomicOp which, Word* v) {
  all_atomics(control, window, which, v);
}
KERNEL change_f32(KernelControl control, brant::pgas::DeviceWindow window, brant::AtomicOp which, float* v) {
  all_atomics(control, window, which, v);
}
KERNEL change_f64(KernelControl control, brant::pgas::DeviceWindow window, brant::AtomicOp which, double* v) {
  all_atomics(control, window, which, v);
}
KERNEL count_in_pointers(brant::GlobalPtr<int> at, brant::GlobalPtr<int> from, Word* found) {
  at += 3;
  --at;
  const brant::GlobalPtr<int> next = 1 + at - 2;
  found[0] = next.offset() + static_cast<Word>(next - from);
  found[1] = static_cast<Word>(next.rank()) + (next == from ? 1 : 0);
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    nvcc = find_tool("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc here")
    folder = tmp_path_factory.mktemp("ptx")
    (folder / "kernels.cu").write_text(KERNELS)
    command = [nvcc, "-std=c++20", "-ptx", "-arch=compute_90", f"-I{ROOT / 'include'}", "-o", "kernels.ptx"]
    done = subprocess.run([*command, "kernels.cu"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return by_kernel((folder / "kernels.ptx").read_text())


def test_a_ring_is_one_release_store(kernels: dict[str, list[str]]) -> None:
    """Nothing is read back, and no fence stands before the release, which is one."""
    assert kernels["ring_thread"] == ["st.release.sys.u64"]
    assert re.fullmatch(rf"{SYNC} st\.release\.sys\.u64", " ".join(kernels["ring_block"]))
    assert kernels["ring_alone"] == ["st.relaxed.sys.u64"]


def test_a_wait_looks_by_acquire_loads(kernels: dict[str, list[str]]) -> None:
    looks = [each for each in kernels["wait_block"] if each.startswith("ld.")]
    assert "ld.acquire.sys.u64" in looks
    # The flag of an abort is no data: it needs no order.
    assert set(looks) <= {"ld.acquire.sys.u64", "ld.relaxed.sys.u64"}
    assert [each for each in kernels["look"] if each.startswith("ld.")] == ["ld.acquire.sys.u64"]


def test_orders_cross_the_bus_by_stores_and_loads_alone(kernels: dict[str, list[str]]) -> None:
    """What is read, changed and written is the ticket, in device memory."""
    for kernel in ("put_in_window", "get_in_window"):
        atomics = {each for each in kernels[kernel] if each.startswith(("atom", "red"))}
        assert atomics == {"atom.acq_rel.gpu.cas.b64"}
        assert "st.release.sys.u64" in kernels[kernel]
        assert "ld.acquire.sys.u64" in kernels[kernel]


def test_a_get_loads_past_the_cache_of_the_sm(kernels: dict[str, list[str]]) -> None:
    """Which does not hear of what others write there: a kernel that looks again would see what it saw before."""
    loads = [each for each in kernels["get_in_window"] if each.startswith("ld.") and ".shared" not in each]
    assert {"ld.relaxed.sys.b128", "ld.relaxed.sys.u64", "ld.relaxed.sys.u8"} <= set(loads)
    assert not [each for each in loads if ".relaxed" not in each and ".acquire" not in each]


def test_atomics_of_windows_are_single_instructions_of_system_scope(kernels: dict[str, list[str]]) -> None:
    """Of each type what the machine has for it. What it has not, extremes of floating numbers, is a loop."""
    bits = {"exch.b", "cas.b", "and.b", "or.b", "xor.b"}
    for kind, size, number, extremes in (
        ("i32", 32, "u", "s"),
        ("u32", 32, "u", "u"),
        ("i64", 64, "u", "s"),
        ("u64", 64, "u", "u"),
        ("f32", 32, "f", None),
        ("f64", 64, "f", None),
    ):
        done = {each for each in kernels[f"change_{kind}"] if ".sys" in each and not each.startswith("fence")}
        names = bits | {f"add.{number}"} | ({f"min.{extremes}", f"max.{extremes}"} if extremes else set())
        expected = {f"atom.acq_rel.sys.{name}{size}" for name in names}
        expected |= {f"atom.relaxed.sys.add.{number}{size}", f"ld.acquire.sys.u{size}", f"st.release.sys.u{size}"}
        assert expected <= done, (kind, sorted(expected - done))
        assert {each for each in done if each.startswith("atom")} <= expected, kind


def test_arrivals_are_counted_in_device_memory(kernels: dict[str, list[str]]) -> None:
    atomics = {each for each in kernels["fan_in"] if each.startswith(("atom", "red"))}
    assert atomics == {"atom.acq_rel.gpu.add.u64"}
    assert "st.release.sys.u64" in kernels["fan_in"]


def test_a_put_copies_first_and_rings_behind_a_barrier(kernels: dict[str, list[str]]) -> None:
    done = kernels["put_block"]
    assert done.count("st.release.sys.u64") == 1
    assert done[-1] == "st.release.sys.u64"
    assert re.fullmatch(SYNC, done[-2])
    assert any(re.match(r"st\.(global\.)?v2\.(u|b)64", each) for each in done), done


def test_a_line_is_one_access_without_a_fence(kernels: dict[str, list[str]]) -> None:
    """Two words of a vector access might be seen one without the other."""
    sent = kernels["send_lines"]
    assert "st.relaxed.sys.b128" in sent
    assert not [each for each in sent if "release" in each or "fence" in each or ".sys.v2" in each]
    assert "ld.relaxed.sys.b128" in kernels["receive_lines"]


def test_nothing_is_changed_across_a_bus_or_read_from_a_stale_cache(kernels: dict[str, list[str]]) -> None:
    assert len(kernels) == 19
    for name, instructions in kernels.items():
        if name.startswith("change_"):  # which is what they are for
            continue
        for each in instructions:
            assert not (each.startswith(("atom", "red")) and ".sys" in each), (name, each)
            assert ".nc" not in each, (name, each)


def test_the_header_compiles_under_nvrtc() -> None:
    library = find_nvrtc()
    if library is None:
        pytest.skip("no NVRTC here: install nvidia-cuda-nvrtc to run this")
    ptx = by_nvrtc(library, KERNELS, "--std=c++20", f"-I{ROOT / 'include'}")
    assert by_kernel(ptx)["ring_thread"] == ["st.release.sys.u64"]
