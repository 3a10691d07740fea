#pragma once

#include <cstddef>
#include <span>

#include "bench/coll/caller.h"
#include "brant/coll/team.h"
#include "brant/core/runtime.h"

namespace brant::bench {

/// What callers of a job of brant share: memory, and how the processes agree. They differ in who carries out the calls
/// that are measured. `runtime` and `team` outlive it.
class TeamCaller : public CollCaller {
 public:
  TeamCaller(Runtime& runtime, Team& team, const CollBench& bench);

  [[nodiscard]] int rank() const override { return team_.rank(); }
  [[nodiscard]] int size() const override { return team_.size(); }
  CollMemory allocate(std::size_t floats) override;
  void bring(CollMemory& memory) override;
  void fetch(CollMemory& memory) override;
  void greatest(std::span<double> values) override;
  double sum(double value) override;

  [[nodiscard]] MemoryKind memory() const override { return kind_; }
  [[nodiscard]] Alloc alloc() const override { return alloc_; }
  [[nodiscard]] Machine machine() override { return describe_machine(runtime_); }

 protected:
  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  [[nodiscard]] Team& team() noexcept { return team_; }
  [[nodiscard]] const Team& team() const noexcept { return team_; }
  /// Throws what ended the team.
  void require(const OpResult& result) const;

 private:
  Runtime& runtime_;
  Team& team_;
  const Alloc alloc_;
  const MemoryKind kind_;
};

}  // namespace brant::bench
