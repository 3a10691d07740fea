#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "brant/core/runtime.h"
#include "ops/mapping/table.h"
#include "support/faulty_device.h"
#include "support/in_process_job.h"

namespace brant::test {

/// Rank 1 owns memory, rank 0 maps it.
class MappingPair {
 public:
  explicit MappingPair(GpuChoice gpu = GpuChoice::emulated, bool files_only = false) : job_(options(gpu, files_only)) {
    imports();  // both listen, as they do once either has a channel or a segment
    exports();
  }

  InProcessJob& job() { return job_; }
  Engine& engine(int rank) { return job_.rank(rank).worker().engine(); }
  MappingTable& table(int rank) { return *MappingTable::of(engine(rank)); }
  Exports& exports() { return table(1).with(engine(1).peers().connect(Rank{0})).exports; }
  Imports& imports() { return table(0).with(engine(0).peers().connect(Rank{1})).imports; }
  /// What rank 0 asked its device for, and what that refuses.
  DeviceFaults& device() { return faults_[0]; }
  DeviceFaults& owners_device() { return faults_[1]; }

  Memory allocate(std::size_t bytes = kBytes) { return job_.rank(1).allocate(MemoryKind::emulated, bytes); }
  /// Tells rank 0 of it.
  ExportedPlace describe(const Memory& memory) {
    const Result<ExportedPlace> place = exports().describe(memory.data());
    EXPECT_TRUE(place.ok());
    job_.run(10);
    return place.ok() ? *place : ExportedPlace{};
  }
  MappedMemory take(const ExportedPlace& place, std::size_t bytes = kBytes) {
    return imports().take(place.buffer_id, place.offset, bytes, Reach::device);
  }
  /// Lets rank 1 see what was freed, and rank 0 hear of it, by progress alone.
  bool run_until(const std::function<bool()>& done) {
    constexpr auto kPatience = std::chrono::seconds(30);
    for (const TimePoint begin = Clock::now(); !done(); job_.run(100)) {
      if (Clock::now() - begin > kPatience) return false;
    }
    return true;
  }

  static constexpr std::size_t kBytes = 4096;

 private:
  JobOptions options(GpuChoice gpu, bool files_only) {
    JobOptions options;
    options.files_only = files_only;
    options.links = true;
    options.gpu = gpu;
    options.wrap_device = [this, gpu](int rank, std::unique_ptr<port::Device> device) {
      return gpu == GpuChoice::none ? std::move(device)
                                    : make_faulty(std::move(device), faults_[static_cast<std::size_t>(rank)]);
    };
    return options;
  }

  std::array<DeviceFaults, 2> faults_;
  InProcessJob job_;
};

}  // namespace brant::test
