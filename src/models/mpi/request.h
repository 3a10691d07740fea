#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "brant/base/intrusive_list.h"
#include "brant/core/op.h"
#include "models/mpi/communicator.h"
#include "models/mpi/matching.h"
#include "models/mpi/typed_buffer.h"
#include "ops/lane/data_lanes.h"

namespace brant::mpi {

class RankState;

/// Something that was begun and ends later: what a handle of a request points to, or what a blocking call waits for.
class Request : public Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::request;
  /// What became of it, as a status says.
  struct Outcome {
    int source = MPI_ANY_SOURCE;
    int tag = MPI_ANY_TAG;
    int error = MPI_SUCCESS;
    std::size_t bytes = 0;
    bool cancelled = false;
  };

  /// `communicator`: null for what belongs to none.
  Request(RankState& rank, Communicator* communicator) noexcept;
  virtual ~Request();

  /// A program makes a request for each message, and often many at once. So rooms that were used before are used again.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* place, std::size_t bytes) noexcept;

  /// Of a persistent one: once more.
  virtual void start() noexcept {}
  /// Something of it is still to come, whether or not the program has started it: one that is freed goes then.
  [[nodiscard]] virtual bool listens() const noexcept { return false; }
  /// As far as it can still be withdrawn. What the program's own function says.
  virtual int cancel() noexcept { return MPI_SUCCESS; }
  /// A process that takes part in it has died.
  virtual void lose(Rank) noexcept {}
  /// A rank of this process that takes part in it has ended its program.
  virtual void lose_rank(RankId) noexcept {}
  /// What it waits for, for people.
  [[nodiscard]] virtual std::string text() const { return "an operation of MPI"; }
  /// Why it failed, for people; empty: its error class says all.
  [[nodiscard]] virtual std::string fault() const { return {}; }
  /// Some of these bytes are in its buffers.
  [[nodiscard]] virtual bool uses(const std::byte*, std::size_t) const noexcept { return false; }
  /// After it has ended, before the program is told, each time that it asks; what has to be done there is done
  /// once. An error class.
  virtual int finish() noexcept { return outcome.error; }
  /// Before the program's handle of it goes. What the program's own function says.
  virtual int let_go() noexcept { return MPI_SUCCESS; }
  /// One of those whose `whole` this is has ended. It may go within this call.
  virtual void part_ended(Request&) noexcept {}

  void begin() noexcept;
  /// From anywhere.
  void end(int error) noexcept;

  [[nodiscard]] bool active() const noexcept { return state_ != State::inactive; }
  [[nodiscard]] bool ended() const noexcept { return state_ == State::ended; }
  /// Whether a test or wait would take it: it has ended, or there is nothing to wait for.
  [[nodiscard]] bool ready() const noexcept { return state_ != State::under_way; }
  void rest() noexcept { state_ = State::inactive; }

  Outcome outcome;
  Request* whole = nullptr;  ///< What it is a part of.
  bool persistent = false;
  bool freed = false;  ///< The program wants to hear no more of it: it goes when it has ended.
  RankState& rank;
  Communicator* const communicator;
  ListHook<Request> hook;  ///< Among those of its rank that are under way.

 protected:
  /// As `begin`, for what ends with its parts: those are under way, and told of losses.
  void begin_as_whole() noexcept;

  bool finished_ = false;  ///< For `finish`, of those that have something to do there once.

 private:
  enum class State : std::uint8_t { inactive, under_way, ended };
  State state_ = State::inactive;
};

enum class SendMode : std::uint8_t { standard, synchronous, ready, buffered };

/// A message that is being sent.
class SendRequest final : public Request {
 public:
  SendRequest(RankState& rank_in, Communicator& communicator_in, const TypedBuffer& source_in, int destination_in,
              int tag_in, SendMode mode_in) noexcept
      : Request(rank_in, &communicator_in),
        source(source_in),
        destination(destination_in),
        tag(tag_in),
        mode(mode_in),
        context(communicator_in.context) {}
  ~SendRequest() override;
  void start() noexcept override;
  void lose(Rank process) noexcept override;
  void lose_rank(RankId id) noexcept override;
  [[nodiscard]] std::string text() const override;
  [[nodiscard]] bool uses(const std::byte* base, std::size_t size) const noexcept override {
    return source.overlaps(base, size);
  }

  TypedBuffer source;
  const int destination;
  const int tag;
  const SendMode mode;
  std::uint32_t context;                ///< What it is matched by.
  std::uint64_t ticket = 0;             ///< By which the receiver names it; 0: it does not.
  std::unique_ptr<std::byte[]> packed;  ///< Data that did not lie in one run, or that was buffered.
  BufferedSends* buffered = nullptr;    ///< It takes room there.
  std::uint64_t buffered_number = 0;    ///< Its number there.
  std::optional<TypeShape> shape;       ///< How data of a device lies that is not in one run.
  lane::DataOrigin* origin = nullptr;   ///< While the data is on its way.
};

/// A message that is being received.
class ReceiveRequest final : public Request, public PostedReceive {
 public:
  ReceiveRequest(RankState& rank_in, Communicator& communicator_in, const TypedBuffer& landing_in, int source_in,
                 int tag_in) noexcept
      : Request(rank_in, &communicator_in), landing(landing_in), source(source_in) {
    wanted = {communicator_in.context, source_in, tag_in};
  }
  ~ReceiveRequest() override;
  void start() noexcept override;
  int cancel() noexcept override;
  void lose(Rank process) noexcept override;
  void lose_rank(RankId id) noexcept override;
  [[nodiscard]] std::string text() const override;
  [[nodiscard]] std::string fault() const override;
  [[nodiscard]] bool uses(const std::byte* base, std::size_t size) const noexcept override {
    return landing.overlaps(base, size);
  }

  TypedBuffer landing;
  const int source;
  bool posted = false;                    ///< It stands in the matching.
  std::uint64_t ticket = 0;               ///< By which the sender names it.
  am::Message* message = nullptr;         ///< That came, while its data is copied.
  lane::DataPart* part = nullptr;         ///< While data comes by the lane.
  std::optional<TypeShape> shape;         ///< How data lies on a device, if not in one run.
  std::unique_ptr<std::byte[]> unpacked;  ///< Data on its way to a landing that does not lie in one run.
};

/// A message that has left already.
class LeftRequest final : public Request {
 public:
  LeftRequest(RankState& rank_in, Communicator& communicator_in) noexcept : Request(rank_in, &communicator_in) {
    begin_as_whole();
    end(MPI_SUCCESS);
  }
};

/// What is received already, or nothing at all: to or from MPI_PROC_NULL.
class EmptyRequest final : public Request {
 public:
  EmptyRequest(RankState& rank_in, Communicator* communicator_in) noexcept : Request(rank_in, communicator_in) {}
  void start() noexcept override;
};

/// A message that a matched probe took out; the handle of MPI_Mrecv.
struct MatchedMessage final : Object {
  static constexpr ObjectKind kKind = ObjectKind::message;
  MatchedMessage(Communicator& communicator_in, am::Message& message_in) noexcept
      : Object(kKind), communicator(communicator_in), message(&message_in) {}

  Communicator& communicator;
  am::Message* message;
};

}  // namespace brant::mpi
