#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/mpi/error_handler.h"
#include "models/mpi/files/data_representation.h"

namespace brant::mpi {

/// What a rank keeps of files in general.
class RankFiles {
 public:
  RankFiles() : handler_(&error_handler_of(MPI_ERRORS_RETURN)) {}
  ~RankFiles() { drop_handler(*handler_); }
  RankFiles(const RankFiles&) = delete;
  RankFiles& operator=(const RankFiles&) = delete;

  /// That of MPI_FILE_NULL: of errors that belong to no file, and of new files.
  [[nodiscard]] ErrorHandler& handler() const noexcept { return *handler_; }
  void set_handler(ErrorHandler& next) noexcept {
    ++next.users;
    drop_handler(*std::exchange(handler_, &next));
  }

  /// Null: there is none of this name.
  [[nodiscard]] DataRepresentationRef find_representation(std::string_view name) const {
    for (const DataRepresentationRef& each : representations_) {
      if (each->name() == name) return each;
    }
    return standard_representation(std::string(name));
  }
  void add_representation(DataRepresentationRef added) { representations_.push_back(std::move(added)); }

 private:
  ErrorHandler* handler_;
  std::vector<DataRepresentationRef> representations_;  ///< Of the program.
};

}  // namespace brant::mpi
