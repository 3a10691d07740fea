#include "models/mpi/collective_work.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "models/mpi/call_error.h"
#include "models/mpi/calls.h"
#include "models/mpi/checks/checks.h"
#include "models/mpi/launch.h"
#include "models/mpi/operations.h"
#include "models/mpi/posting.h"
#include "models/mpi/process.h"
#include "models/mpi/types/pack.h"
#include "models/mpi/types/reduce.h"

namespace brant::mpi {

namespace {

/// For buffers without bytes: null would mean something else to a team.
std::byte g_nothing[1];

constexpr std::size_t kElementBytesMax = 4096;

bool has_root(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

}  // namespace

CollectiveWork::CollectiveWork() {
  if (checks() != nullptr) [[unlikely]]
    said_ = std::make_unique<SaidCall>();
}

CollectiveWork::~CollectiveWork() {
  if (op_ != nullptr) op_->release();
}

std::byte* CollectiveWork::staging(std::size_t bytes) {
  staging_.push_back(std::make_unique<std::byte[]>(bytes + 1));
  return staging_.back().get();
}

bool CollectiveWork::adjacent(const std::vector<TypedBuffer>& blocks) noexcept {
  const std::byte* next = nullptr;
  MemoryKind kind = MemoryKind::detect;
  for (const TypedBuffer& block : blocks) {
    if (block.bytes() == 0) continue;
    if (!block.contiguous() || (next != nullptr && (block.data() != next || block.kind() != kind))) return false;
    next = block.data() + block.bytes();
    kind = block.kind();
  }
  return true;
}

std::size_t CollectiveWork::total(const std::vector<TypedBuffer>& blocks) noexcept {
  std::size_t bytes = 0;
  for (const TypedBuffer& block : blocks) bytes += block.bytes();
  return bytes;
}

void CollectiveWork::give(const TypedBuffer& source) {
  if (source.bytes() == 0) {
    call.in = {g_nothing, 0, MemoryKind::host};
  } else if (source.contiguous()) {
    call.in = source.run();
  } else {
    std::byte* copy = staging(source.bytes());
    before_.emplace_back([source, copy] { source.pack_any(copy); });
    call.in = {copy, source.bytes(), MemoryKind::host};
  }
}

void CollectiveWork::get(const TypedBuffer& landing) {
  if (landing.bytes() == 0) {
    call.out = {g_nothing, 0, MemoryKind::host};
  } else if (landing.contiguous()) {
    call.out = landing.run();
  } else {
    std::byte* copy = staging(landing.bytes());
    after_.emplace_back([landing, copy] { landing.unpack_any(copy, landing.bytes()); });
    call.out = {copy, landing.bytes(), MemoryKind::host};
  }
}

void CollectiveWork::give_and_get(const TypedBuffer& both) {
  get(both);
  if (both.contiguous() || both.bytes() == 0) return;
  auto* copy = static_cast<std::byte*>(call.out.data);
  before_.emplace_back([both, copy] { both.pack_any(copy); });
}

void CollectiveWork::get_nothing(std::size_t bytes) { call.out = {staging(bytes), bytes, MemoryKind::host}; }

namespace {

/// Where blocks begin that lie one behind the other: at the first that has bytes.
const TypedBuffer* first_of(const std::vector<TypedBuffer>& blocks) noexcept {
  for (const TypedBuffer& block : blocks) {
    if (block.bytes() != 0) return &block;
  }
  return nullptr;
}

void pack_all(const std::vector<TypedBuffer>& blocks, std::byte* place) {
  for (const TypedBuffer& block : blocks) {
    block.pack_any(place);
    place += block.bytes();
  }
}

}  // namespace

void CollectiveWork::give(std::vector<TypedBuffer> blocks) {
  const std::size_t bytes = total(blocks);
  const TypedBuffer* first = first_of(blocks);
  if (first == nullptr) {
    call.in = {g_nothing, 0, MemoryKind::host};
  } else if (adjacent(blocks)) {
    call.in = {first->data(), bytes, first->kind()};
  } else {
    std::byte* copy = staging(bytes);
    before_.emplace_back([blocks = std::move(blocks), copy] { pack_all(blocks, copy); });
    call.in = {copy, bytes, MemoryKind::host};
  }
}

void CollectiveWork::get(std::vector<TypedBuffer> blocks) {
  const std::size_t bytes = total(blocks);
  const TypedBuffer* first = first_of(blocks);
  if (first == nullptr) {
    call.out = {g_nothing, 0, MemoryKind::host};
  } else if (adjacent(blocks)) {
    call.out = {first->data(), bytes, first->kind()};
  } else {
    // What is in place already must not be lost: a member's own block is not always written.
    std::byte* copy = staging(bytes);
    before_.emplace_back([blocks, copy] { pack_all(blocks, copy); });
    after_.emplace_back([blocks = std::move(blocks), copy] {
      const std::byte* place = copy;
      for (const TypedBuffer& block : blocks) {
        block.unpack_any(place, block.bytes());
        place += block.bytes();
      }
    });
    call.out = {copy, bytes, MemoryKind::host};
  }
}

std::byte* CollectiveWork::spread(const TypedBuffer& data) {
  const auto bytes = static_cast<std::size_t>(data.count()) * combining_.element_bytes;
  std::byte* image = staging(bytes);
  std::byte* packed = staging(data.bytes());
  before_.emplace_back([data, image, packed] {
    data.pack_any(packed);
    unpack({packed, data.bytes()}, 0, image, data.count(), data.type());
  });
  return image;
}

Op& op_for(MPI_Op handle, const Datatype& type) {
  Op& op = operation_of(handle);
  const mpi::Fault fault = check_reduce(op, type, ReduceUse::reduction);
  require(fault.error == ErrorClass::success, static_cast<int>(fault.error), "{}", fault.text);
  return op;
}

void CollectiveWork::combine(MPI_Op op, MPI_Datatype type_handle, const TypedBuffer* source, const TypedBuffer* landing,
                             bool in_place) {
  Datatype& type = datatype_of(type_handle);
  type_ = DatatypeRef(&type);
  op_ = &op_for(op, type);
  op_->retain();
  if (checks() != nullptr) [[unlikely]]
    said_->set_op(op_->name() == "user" ? "a function of the program" : op_->name());
  if (const auto known = brant_reduction(*op_, type); known && type.contiguous()) {
    call.type = known->type;
    call.op = known->op;
  } else {
    const bool within = type.true_lb() >= 0 && type.true_lb() + type.true_extent() <= type.extent();
    const auto element = static_cast<std::size_t>(type.extent());
    require(within && element > 0 && element <= kElementBytesMax, MPI_ERR_UNSUPPORTED_OPERATION,
            "elements of the datatype {} cannot be combined: brant takes those that lie within their extent, of {} "
            "bytes at most",
            type.name(), kElementBytesMax);
    combining_ = {op_, &type, element, {}};
    reduce_ = {&CollectiveWork::combine_elements, &combining_, element};
    call.op = ReduceOp::user;
    call.user = &reduce_;
  }
  const bool as_they_are = type.contiguous();
  if (as_they_are) {
    if (landing != nullptr) get(*landing);
    if (source != nullptr) give(*source);
    if (in_place) call.in = call.out;
    return;
  }
  if (landing != nullptr) {
    const TypedBuffer place = *landing;
    const auto bytes = static_cast<std::size_t>(place.count()) * combining_.element_bytes;
    std::byte* image = in_place ? spread(place) : staging(bytes);
    std::byte* packed = staging(place.bytes());
    // A result that nobody makes (MPI_Exscan at rank 0) leaves what was there.
    if (!in_place) {
      before_.emplace_back([place, image, packed] {
        place.pack_any(packed);
        unpack({packed, place.bytes()}, 0, image, place.count(), place.type());
      });
    }
    after_.emplace_back([place, image, packed] {
      pack(image, place.count(), place.type(), 0, {packed, place.bytes()});
      place.unpack_any(packed, place.bytes());
    });
    call.out = {image, bytes, MemoryKind::host};
    if (in_place) call.in = call.out;
  }
  if (source != nullptr)
    call.in = {spread(*source), static_cast<std::size_t>(source->count()) * combining_.element_bytes, MemoryKind::host};
}

void CollectiveWork::say(MPI_Datatype type, MPI_Count count) {
  if (said_ != nullptr) said_->set_data(datatype_of(type), count);
}

const SaidCall* CollectiveWork::said(const char* function) {
  if (said_ == nullptr) return nullptr;
  said_->set_call(function);
  if (has_root(call.kind)) said_->root = call.root;
  return said_.get();
}

void CollectiveWork::keep_apart() {
  const Buffer landing = call.out;
  if (landing.bytes == 0) return;
  std::byte* copy = staging(landing.bytes);
  call.out = {copy, landing.bytes, MemoryKind::host};
  after_.insert(after_.begin(),
                [landing, copy] { process()->runtime().copy(landing, {copy, landing.bytes, MemoryKind::host}); });
}

/// `accumulated` is of lower ranks, so it is the first operand.
void CollectiveWork::combine_elements(void* context, void* accumulated, const void* next,
                                      std::uint64_t count) noexcept {
  auto& how = *static_cast<Combining*>(context);
  const auto elements = static_cast<Count>(count);
  if (how.op->commutes()) return reduce_local(*how.op, next, accumulated, elements, *how.type);
  const std::size_t bytes = static_cast<std::size_t>(count) * how.element_bytes;
  if (how.scratch.size() < bytes) how.scratch.resize(bytes);
  std::memcpy(how.scratch.data(), next, bytes);
  reduce_local(*how.op, accumulated, how.scratch.data(), elements, *how.type);
  std::memcpy(accumulated, how.scratch.data(), bytes);
}

void CollectiveWork::prepare() {
  call.block_bytes = block_bytes;
  call.in_block_bytes = in_block_bytes;
  for (const auto& step : before_) step();
}

void CollectiveWork::finish() {
  for (const auto& step : after_) step();
}

// Carrying it out
// -------------------------------------------------------------------------------------------------------------------

namespace {

void require_ok(Communicator& communicator, Status status) {
  if (status == Status::ok) return;
  const std::string fault = communicator.team().fault();
  fail(communicator.team().error_class(status), "{}", fault.empty() ? std::string(status_text(status)) : fault);
}

/// A collective that was begun.
class CollectiveRequest final : public Request {
 public:
  CollectiveRequest(RankState& rank_in, Communicator& communicator_in, const char* function,
                    std::unique_ptr<CollectiveWork> work) noexcept
      : Request(rank_in, &communicator_in), function_(function), work_(std::move(work)) {}

  void start() noexcept override {
    begin();
    Status status = Status::ok;
    try {
      work_->prepare();
      op_.delivered = {[](void* context, const OpResult& result) noexcept {
                         static_cast<CollectiveRequest*>(context)->end_with(result.status);
                       },
                       this};
      status = communicator->team().post(work_->call, op_, work_->said(function_));
    } catch (const Error& error) {
      status = error.status();
    } catch (const std::exception&) {
      status = Status::no_memory;
    }
    if (status != Status::in_progress) end_with(status);
  }

  [[nodiscard]] std::string text() const override { return fmt::format("{} of {}", function_, name_of(*communicator)); }
  [[nodiscard]] std::string fault() const override { return fault_; }
  [[nodiscard]] bool uses(const std::byte* base, std::size_t bytes) const noexcept override {
    const Collective& call = work_->call;
    return overlap(static_cast<const std::byte*>(call.in.data), call.in.bytes, base, bytes) ||
           overlap(static_cast<const std::byte*>(call.out.data), call.out.bytes, base, bytes);
  }

  int finish() noexcept override {
    if (outcome.error != MPI_SUCCESS || std::exchange(finished_, true)) return outcome.error;
    try {
      work_->finish();
    } catch (const Error& error) {
      outcome.error = error_class_of(error.status());
    } catch (const std::exception&) {
      outcome.error = MPI_ERR_NO_MEM;
    }
    return outcome.error;
  }

 private:
  /// The team's fault is that of its latest call, so it is taken now.
  void end_with(Status status) noexcept {
    const RankTeam& team = communicator->team();
    if (status != Status::ok) fault_ = team.fault();
    end(status != Status::ok ? team.error_class(status) : kSuccess);
  }

  const char* const function_;
  std::string fault_;
  std::unique_ptr<CollectiveWork> work_;
  brant::Op op_;
};

}  // namespace

void carry_out(const Launch& how, Communicator& communicator, std::unique_ptr<CollectiveWork> work) {
  if (how.way == Launch::Way::run) {
    work->prepare();
    require_ok(communicator, communicator.team().run(work->call, work->said(how.function)).status);
    return work->finish();
  }
  static_cast<void>(communicator.team());  // made here if it is not there yet
  hand_out(std::make_unique<CollectiveRequest>(current_rank(), communicator, how.function, std::move(work)),
           how.way == Launch::Way::prepare, how.request);
}

}  // namespace brant::mpi
