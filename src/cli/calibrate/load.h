#pragma once

#include <string>

namespace brant::cli::calibrate {

/// What others do on this machine while something is measured.
class LoadWatch {
 public:
  /// Begins to look. `processes` measure, each of which works as much as this one.
  explicit LoadWatch(int processes);

  /// Empty, or that others used so much since then that what was measured may be theirs.
  [[nodiscard]] std::string complaint() const;

 private:
  struct CpuTimes {
    double at_s = 0;
    double used_s = 0;  ///< By all processes of this machine; 0: the system does not tell.
    double own_s = 0;   ///< By this one.
  };
  static CpuTimes look();

  const int processes_;
  const CpuTimes before_ = look();
};

}  // namespace brant::cli::calibrate
