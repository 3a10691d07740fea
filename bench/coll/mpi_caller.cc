#include <string>
#include <vector>

#include "bench/coll/caller.h"
#include "bench/mpi/mpi_library.h"

namespace brant::bench {
namespace {

class MpiCaller final : public CollCaller {
 public:
  explicit MpiCaller(const mpi::Choice& choice) : mpi_(mpi::load(choice.library)), peer_(choice.peer) {
    mpi::require(mpi_.init(nullptr, nullptr), "MPI_Init");
    mpi::require(mpi_.comm_rank(mpi_.world, &rank_), "MPI_Comm_rank");
    mpi::require(mpi_.comm_size(mpi_.world, &size_), "MPI_Comm_size");
  }
  ~MpiCaller() override { static_cast<void>(mpi_.finalize()); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  CollMemory allocate(std::size_t floats) override {
    auto memory = std::make_shared<std::vector<float>>(floats);
    return {{memory->data(), floats}, memory->data(), memory};
  }

  void call(const CollCall& call, std::size_t times) override {
    for (std::size_t i = 0; i < times; ++i) call_once(call);
  }

  void greatest(std::span<double> values) override {
    const std::vector<double> own(values.begin(), values.end());
    mpi::require(
        mpi_.allreduce(own.data(), values.data(), static_cast<int>(own.size()), mpi_.double_type, mpi_.max, mpi_.world),
        "MPI_Allreduce");
  }
  double sum(double value) override {
    double all = 0;
    mpi::require(mpi_.allreduce(&value, &all, 1, mpi_.double_type, mpi_.sum, mpi_.world), "MPI_Allreduce");
    return all;
  }

  [[nodiscard]] std::string path() const override { return peer_.empty() ? "mpi" : mpi_.version; }
  [[nodiscard]] std::string title() const override { return peer_.empty() ? "brant's MPI" : mpi_.version; }
  [[nodiscard]] std::string peer() const override { return peer_; }
  [[nodiscard]] std::string peer_version() const override { return mpi_.version; }
  [[nodiscard]] Machine machine() override { return describe_machine(); }

 private:
  void call_once(const CollCall& call) {
    const auto all = static_cast<int>(call.bytes / sizeof(float));
    const int block = all / size_;
    const mpi::Handle type = mpi_.float_type, sum = mpi_.sum, world = mpi_.world;
    switch (call.kind) {
      case CollectiveKind::barrier: return mpi::require(mpi_.barrier(world), "MPI_Barrier");
      case CollectiveKind::broadcast: return mpi::require(mpi_.bcast(call.out, all, type, 0, world), "MPI_Bcast");
      case CollectiveKind::allgather:
        return mpi::require(mpi_.allgather(call.in, block, type, call.out, block, type, world), "MPI_Allgather");
      case CollectiveKind::alltoall:
        return mpi::require(mpi_.alltoall(call.in, block, type, call.out, block, type, world), "MPI_Alltoall");
      case CollectiveKind::reduce_scatter:
        return mpi::require(mpi_.reduce_scatter_block(call.in, call.out, block, type, sum, world),
                            "MPI_Reduce_scatter_block");
      default: return mpi::require(mpi_.allreduce(call.in, call.out, all, type, sum, world), "MPI_Allreduce");
    }
  }

  const mpi::Library mpi_;
  const std::string peer_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<CollCaller> make_mpi_caller(const mpi::Choice& choice) { return std::make_unique<MpiCaller>(choice); }

}  // namespace brant::bench
