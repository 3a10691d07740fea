#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace brant::mpi {

/// Small files by which programs of one user find each other: a folder that nobody else can enter, beside the pages of
/// `brant info --jobs`, or the one that BRANT_MPI_PORTS names, for programs on several hosts that share it.
class MeetingFolder {
 public:
  /// Throws CallError (MPI_ERR_OTHER) where there is no such folder.
  MeetingFolder();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Files of this host only; so those of processes that have ended can be told, and are removed.
  [[nodiscard]] bool is_of_host() const noexcept { return of_host_; }
  /// The whole text appears at once. False: there is such a file already. Throws CallError.
  [[nodiscard]] bool write(const std::string& name, std::string_view text) const;
  [[nodiscard]] std::optional<std::string> read(const std::string& name) const;
  /// False: there was none.
  bool remove(const std::string& name) const noexcept;

 private:
  std::string path_;
  bool of_host_ = true;
};

}  // namespace brant::mpi
