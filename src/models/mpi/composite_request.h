#pragma once

#include <cstddef>

#include "models/mpi/request.h"

namespace brant::mpi {

/// A request that ends when its parts have: requests whose `whole` it is. It is not among those under way, which its
/// parts are, so losses are told to them. Where a part fails it waits for the others all the same: their buffers are in
/// use.
class CompositeRequest : public Request {
 public:
  using Request::Request;
  void part_ended(Request& part) noexcept override;

 protected:
  /// Begins it, with so many parts that end later, and one more: that they are being started. `drop_one` ends that one.
  void begin_parts(std::size_t parts) noexcept;
  void drop_one() noexcept;
  /// All parts have ended: fills the outcome. An error class.
  virtual int conclude() noexcept { return first_error(); }

  [[nodiscard]] std::size_t open() const noexcept { return open_; }
  /// The first part that ended with an error; null: none did.
  [[nodiscard]] const Request* failed() const noexcept { return failed_; }
  [[nodiscard]] int first_error() const noexcept { return failed_ != nullptr ? failed_->outcome.error : MPI_SUCCESS; }

 private:
  std::size_t open_ = 0;
  const Request* failed_ = nullptr;
};

}  // namespace brant::mpi
