// The seam of what elements do together: sections, callbacks and contributions.
#include <fmt/format.h>

#include "models/chare/core.h"

namespace brant::detail {
namespace {

/// A call of an entry of `Gatherings` whose last argument is a blob that the caller fills: `Outgoing::args` is its
/// begin.
template <auto Method, typename... Header>
Outgoing open_blob(Core& core, std::int32_t rank, const CallOptions& options, std::size_t bytes,
                   const Header&... header) {
  const auto count = static_cast<std::uint64_t>(bytes);
  SizeArchive size;
  size(header..., count);
  size.align(16);
  const auto& entry = EntryOf<Gatherings, Method>::get();
  Outgoing outgoing = open_call(core, Gatherings::target_on(rank), entry, options, 0, size.size() + bytes);
  WriteArchive write(outgoing.args);
  write(header..., count);
  write.align(16);
  outgoing.args += size.size();
  return outgoing;
}

}  // namespace

std::int32_t rank_of(Core& core) noexcept { return core.context().rank; }

std::uint64_t define_section(Core& core, std::uint32_t collection, const std::vector<ElementKey>& members) {
  if (members.empty()) {
    throw Error(Status::invalid_argument,
                fmt::format("rank {}: a section of {} without members: name at least one element", core.context().rank,
                            core.collections().name_of_array(collection)));
  }
  const std::uint64_t section = core.collections().gatherings().new_section();
  tell<&Gatherings::define>(core, core.context().rank, GatheringId{section, collection, 0}, core.context().rank,
                            members);
  return section;
}

Outgoing open_callback(Core& core, const CallbackTarget& target, std::size_t bytes) {
  switch (target.kind) {
    case CallbackKind::exit: core.ending().exit(static_cast<std::int32_t>(target.number)); return {};
    case CallbackKind::element:
    case CallbackKind::array: {
      const auto* entry = core.context().registry.find<EntryInfo>(target.entry, RegisteredKind::entry);
      if (entry == nullptr && core.context().registry.is_awaited(target.entry)) {
        throw Error(Status::invalid_argument,
                    fmt::format("rank {}: a callback names an entry method that nobody has enrolled here: open the "
                                "library that has it on this rank too, and co_await Chares::enroll_late()",
                                core.context().rank));
      }
      if (entry == nullptr) throw Error(Status::internal, "a callback names an entry that is none");
      if (target.kind == CallbackKind::array) return open_broadcast(core, target.collection, *entry, {}, bytes);
      return open_call(core, {target.collection, target.key}, *entry, {}, 0, bytes);
    }
    case CallbackKind::section:
      return open_multicast(core, {target.section, target.collection, 0}, target.entry, {}, bytes);
    case CallbackKind::future: {
      core.scheduler().make_room();
      Invocation answered{&core, nullptr, nullptr, nullptr, target.rank, target.number};
      return open_reply(answered, bytes);
    }
    case CallbackKind::function:
      return open_blob<&Gatherings::run_function>(core, target.rank, {}, bytes, target.number, target.section);
    default: return {};
  }
}

std::uint32_t expect_callback(Core& core, const Waiting& waiting) {
  static constinit EntryInfo callback_entry{{RegisteredKind::entry, 0, kCallbackOwner, "callback", ""}, nullptr};
  return expect_reply(core, waiting, Target{}, callback_entry);
}

CallbackTarget keep_function(Core& core, std::function<void(ReadArchive&)> function) {
  return core.collections().gatherings().functions().keep(std::move(function), core.context().rank);
}

void destroy_callback(Core& core, const CallbackTarget& target) {
  if (target.kind == CallbackKind::function) {
    tell<&Gatherings::destroy_function>(core, target.rank, target.number, target.section);
  } else if (target.kind == CallbackKind::future) {
    core.answers().fail_future(target, Error(Status::canceled, "the callback was destroyed before anybody called it"));
  }
}

void contribute(Core& core, const Contribution& contribution) {
  core.collections().gatherings().contribute_here(contribution);
}

}  // namespace brant::detail
