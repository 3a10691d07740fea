#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "brant/base/intrusive_list.h"
#include "brant/core/op.h"
#include "models/mpi/request.h"
#include "models/mpi/typed_buffer.h"

namespace brant::mpi {

class Transfer;
class Window;

/// What MPI_Rput and the like give.
class WindowRequest final : public Request {
 public:
  WindowRequest(RankState& rank_in, Communicator& communicator_in) noexcept : Request(rank_in, &communicator_in) {}
  ~WindowRequest() override;
  int finish() noexcept override;
  [[nodiscard]] std::string text() const override { return "an access to a window"; }

  Transfer* transfer = nullptr;  ///< As long as that has something to do.
};

/// A call of MPI_Put and the like that takes time at this end, in one piece or several. It is a list's of its window,
/// and goes when all pieces have ended and its data is where the program wants it.
class Transfer final {
 public:
  /// Enters it. `landing`: of what comes from the target, if anything does.
  Transfer(Window& window, int target, const TypedBuffer* landing, WindowRequest* request) noexcept;
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Where the packed data of the landing goes: the landing itself, if that is packed memory of the host. May throw
  /// bad_alloc.
  [[nodiscard]] std::byte* room();

  void add_piece() noexcept { ++pieces_; }
  /// The transfer may be gone afterwards.
  void end_piece(int error) noexcept;
  /// The sink for operations that are a piece of a transfer.
  static void on_ended(void* self, const OpResult& result) noexcept;

  /// Of one that has landed: puts the data where the program wants it, and goes. Returns an error class.
  int settle() noexcept;

  Window& window;
  const int target;
  WindowRequest* request;
  brant::Op op;                         ///< Of a piece that is carried by a segment.
  std::unique_ptr<std::byte[]> packed;  ///< What is given, or what comes, packed.
  ListHook<Transfer> hook;

 private:
  void end() noexcept;

  TypedBuffer landing_;
  bool lands_ = false;
  bool over_ = false;       ///< No piece is missing.
  std::size_t pieces_ = 1;  ///< The call itself is one until it has begun all others.
  int error_ = MPI_SUCCESS;
};

}  // namespace brant::mpi
