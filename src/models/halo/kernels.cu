#include "brant/halo/direct_steps.cuh"
#include "brant/halo/triggered_steps.cuh"

extern "C" __global__ void brant_halo_copy(const brant::halo::CopyTable table, brant::simt::Word first,
                                           brant::simt::Word last) {
  brant::simt::GpuThread machine;
  brant::halo::copy_chunks(machine, table, first, last, {machine.block(), machine.blocks()});
}

extern "C" __global__ void brant_halo_exchange(const brant::notify::KernelControl control,
                                               const brant::halo::DirectPlan plan, brant::simt::Word epoch) {
  brant::simt::GpuThread machine;
  brant::halo::exchange_directly(machine, control, plan, epoch);
}

// As many blocks at once as of the one above.
extern "C" __global__ void __launch_bounds__(brant::halo::kChunkThreads, 5)
    brant_halo_exchange_counted(const brant::notify::KernelControl control, const brant::halo::DirectPlan plan,
                                const brant::halo::DirectCount count) {
  brant::simt::GpuThread machine;
  brant::halo::exchange_counted(machine, control, plan, count);
}

extern "C" __global__ void __launch_bounds__(brant::halo::kStayThreads, 1)
    brant_halo_resident(const brant::notify::KernelControl control, const brant::halo::DirectPlan plan,
                        const brant::notify::DeviceBell finished) {
  brant::simt::GpuThread machine;
  brant::halo::exchange_as_told(machine, control, plan, finished);
}

extern "C" __global__ void __launch_bounds__(brant::halo::kStayThreads, 1)
    brant_halo_pack(const brant::notify::KernelControl control, const brant::halo::TriggeredPlan plan) {
  brant::simt::GpuThread machine;
  brant::halo::pack_as_told(machine, control, plan);
}
