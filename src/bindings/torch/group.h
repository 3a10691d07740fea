#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/torch/job.h"
#include "brant/coll/team.h"
#include "brant/device.h"

namespace brant::distributed {

/// The members of one process group: a team for what they do together, and a channel for each tag that two of them use.
/// All calls with the job claimed (`Job::with`), but those of `Job`. Calls that cannot be posted end at once: `done` is
/// told of that as of any other end.
class Group {
 public:
  /// `members`: ranks of the job, in the group's order. `name` is the same at all of them, and of no other group.
  Group(Job& job, const std::vector<Rank>& members, std::string name, std::chrono::milliseconds timeout);

  [[nodiscard]] int rank() const noexcept { return team_.rank(); }
  [[nodiscard]] int size() const noexcept { return team_.size(); }

  /// Posts by `post`, once the stream has done what it has to do now, and behind the posts that wait already. Null: of
  /// memory that no stream works on.
  void in_order(StreamHandle stream, std::function<void()> post);
  /// Posts those that waited, as far as their streams have come: how many.
  unsigned pass_gates();

  /// Whether streams carry all of them out. When this is first asked, it waits for all members: they ask it before the
  /// same call. Throws Error.
  [[nodiscard]] bool streams_take(const std::vector<Collective>& calls);
  /// Queues them there. Not ok: with a text that says why.
  [[nodiscard]] Outcome enqueue(const std::vector<Collective>& calls, StreamHandle stream);
  /// What has ended the group, for people; empty while it is of use.
  [[nodiscard]] std::string fault() const;

  /// Carries them out, one after the other.
  void collect(const std::vector<Collective>& calls, Done done);
  struct Transfer {
    int peer;
    Buffer memory;
  };
  /// Sends and receives, side by side; those of no bytes are left out.
  void exchange(const std::vector<Transfer>& sends, const std::vector<Transfer>& receives, std::int64_t tag, Done done);
  /// Of whoever sends first with this tag.
  void receive_any(Buffer landing, std::int64_t tag, Done done);

  /// From here on all calls under way end.
  void close() noexcept;
  /// The same, since messages were not there within the group's time-out.
  void end_late();
  /// The runtime has gone, and tells of nothing any more: neither do its operations.
  void abandon() noexcept;

 private:
  /// The messages of one tag from and to one member.
  struct Lane {
    Channel channel;
    std::deque<std::vector<std::byte>> early;  ///< Came for a receive from anybody that another member was quicker for.
  };
  struct AnyReceive;
  struct Place;
  /// A post that waits for a stream, if it does.
  struct Gate {
    Event passed;
    std::function<void()> post;
  };
  enum class Streams : std::uint8_t { not_asked, ready, none };

  Lane& lane(int peer, std::int64_t tag);
  Call& begin(Done done);
  void post(Call& call, Status posted) noexcept;
  void one_less(Call& call) noexcept;
  void limit(Call& call);
  void receive(Call& call, Lane& from, Buffer landing);
  Status post_place(Place& place, std::int64_t tag) noexcept;
  void prepare_streams();
  void take(Buffer landing, const std::vector<std::byte>& message);
  [[nodiscard]] std::string explain(const Call& call) const;
  [[nodiscard]] Completion sink_of(Call& call) noexcept;

  Job& job_;
  const std::string name_;
  const std::chrono::milliseconds timeout_;
  Team team_;
  std::map<std::pair<int, std::int64_t>, Lane> lanes_;
  std::map<Call*, std::unique_ptr<Call>> calls_;  ///< Under way.
  std::deque<Gate> gates_;
  Streams streams_ = Streams::not_asked;
  bool open_ = true;
  std::string fault_;  ///< Why it has ended before its time.
};

}  // namespace brant::distributed
