#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "brant/base/intrusive_list.h"
#include "port/wire.h"

namespace brant::port::ucx {

class UcxOperations;
struct UcxEndpoint;

enum class RequestKind : std::uint8_t { send, receive, put, get, atomic, flush };  // put, get: see UcxPieces

enum class RequestState : std::uint8_t {
  idle,
  posting,  ///< Inside the UCX call that starts it. UCX may already report the end here and yet return the request.
  pending,
  ended,  ///< UCX reported the end while posting.
};

/// How far a put or get in pieces has come, in bytes.
struct UcxInPieces {
  std::byte* here = nullptr;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t asked = 0;
  std::uint64_t done = 0;
  unsigned under_way = 0;  ///< Pieces that were asked for, and of which the owner has not said what became of them.
};

/// Our part of one UCX request. UCX's own part lies directly in front of it, in the same block
/// (UCP_OP_ATTR_FIELD_REQUEST), so an operation costs no allocation. While the operation is pending, `op` is the
/// caller's record, or null once it was given up: a late callback of UCX then finds nothing of the caller's.
struct alignas(64) UcxRequest {
  WireOp* op = nullptr;
  UcxOperations* operations = nullptr;
  UcxEndpoint* endpoint = nullptr;  ///< Null for receives: nobody knows yet whose message it will be.
  UcxRequest* next = nullptr;       ///< Free list, or the endpoint's list of pending requests.
  UcxRequest** link = nullptr;      ///< Where `next` of the predecessor lies, when in an endpoint's list.
  std::uint64_t* result = nullptr;  ///< Atomics: where the caller wants the old value.
  std::uint64_t sequence = 0;       ///< Atomics and flushes: their order on the endpoint.
  std::uint32_t generation = 0;     ///< Tells a reply to this use of the record from one to an earlier use.
  Status ended_status = Status::ok;
  RequestKind kind = RequestKind::send;
  RequestState state = RequestState::idle;
  bool ucx_holds = false;  ///< UCX will still call back, so the record may not be reused.
  UcxInPieces pieces;
  ListHook<UcxRequest> ask_hook;  ///< In its endpoint's list of those that ask for their next piece.
};

/// The pending requests of an endpoint. Links lie in the requests.
struct UcxRequestList {
  UcxRequest* first = nullptr;

  void add(UcxRequest& request) noexcept {
    request.next = first;
    request.link = &first;
    if (first != nullptr) first->link = &request.next;
    first = &request;
  }
  static void remove(UcxRequest& request) noexcept {
    if (request.link == nullptr) return;
    *request.link = request.next;
    if (request.next != nullptr) request.next->link = request.link;
    request.link = nullptr;
  }
};

/// Lends requests; grows by blocks up to a bound and never shrinks. No locks: one thread owns the wire.
class UcxRequestPool {
 public:
  UcxRequestPool(UcxOperations& operations, std::size_t ucx_bytes, std::size_t requests_max) noexcept;

  /// Null when the bound or the memory is reached.
  UcxRequest* take() noexcept {
    if (free_ == nullptr && !grow()) return nullptr;
    UcxRequest* request = free_;
    free_ = request->next;
    return request;
  }
  void give(UcxRequest& request) noexcept {
    request.op = nullptr;
    request.state = RequestState::idle;
    request.ucx_holds = false;
    ++request.generation;
    request.next = free_;
    free_ = &request;
  }

  /// The request at an address that another process says. Null: none of this pool's is there.
  [[nodiscard]] UcxRequest* find(std::uint64_t address) const noexcept;

  /// Calls `visit` for every pending request.
  template <typename Visit>
  void for_each_pending(Visit&& visit) noexcept {
    for (const Block& block : blocks_) {
      for (std::size_t i = 0; i < block.count; ++i) {
        UcxRequest& request = at(block, i);
        if (request.state == RequestState::pending) visit(request);
      }
    }
  }

 private:
  struct FreeBlock {
    void operator()(std::byte* memory) const noexcept;
  };
  struct Block {
    std::unique_ptr<std::byte, FreeBlock> memory;
    std::size_t count = 0;
  };

  bool grow() noexcept;
  [[nodiscard]] UcxRequest& at(const Block& block, std::size_t index) const noexcept;

  UcxRequest* free_ = nullptr;
  UcxOperations& operations_;
  std::size_t front_bytes_;  ///< UCX's part, rounded up so that ours stays aligned.
  std::size_t requests_max_;
  std::size_t requests_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace brant::port::ucx
