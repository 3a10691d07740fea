#include "ops/rpc/parts.h"

#include <new>

#include <fmt/format.h>

#include "ops/rpc/service.h"

namespace brant::remote {

void* Parts::find(std::uint64_t id, std::uint64_t type) const {
  if (id > made_) throw PartNotMade(id);
  const auto found = parts_.find(id);
  if (found == parts_.end()) {
    throw Error(Status::not_found,
                fmt::format("distributed object {} has no part here any more: let all processes agree that nobody "
                            "calls any more before they destroy it",
                            id));
  }
  if (found->second->type != type) {
    throw Error(Status::invalid_argument,
                fmt::format("distributed object {} is of another type here: all processes make them in one order", id));
  }
  return found->second->value;
}

bool Parts::keep(am::Message& call, std::uint64_t id) noexcept {
  try {
    waiting_[id].push_back(call);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

am::MessageList Parts::take_all() noexcept {
  am::MessageList all;
  for (auto& [id, calls] : waiting_) {
    while (am::Message* call = calls.pop_front()) all.push_back(*call);
  }
  waiting_.clear();
  return all;
}

void add_part(RpcService& service, DistributedPart& part) { service.add_part(part); }
void remove_part(RpcService& service, DistributedPart& part) noexcept { service.parts().remove(part); }
void* arrived_part(RpcService& service, std::uint64_t id, std::uint64_t type) { return service.parts().find(id, type); }

}  // namespace brant::remote
