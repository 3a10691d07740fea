#include "models/mpi/checks/said_call.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "models/mpi/checks/checks.h"
#include "models/mpi/types/signature.h"

namespace brant::mpi {

namespace {

template <std::size_t room>
void store(std::string_view text, char (&place)[room]) noexcept {
  place[text.copy(place, room - 1)] = 0;
}

/// Members rightly call these against each other: two groups that meet, and the start of a world.
std::string_view common_name(std::string_view function) noexcept {
  constexpr std::array kMeetings = {"MPI_Comm_accept",         "MPI_Comm_connect", "MPI_Comm_spawn",
                                    "MPI_Comm_spawn_multiple", "MPI_Init",         "MPI_Init_thread"};
  return std::ranges::find(kMeetings, function) != kMeetings.end() ? "a function that connects processes" : function;
}

}  // namespace

SaidCall SaidCall::current() noexcept {
  SaidCall said;
  said.set_call(common_name(checks()->current_call()));
  return said;
}

void SaidCall::set_call(std::string_view function) noexcept { store(function, call); }

void SaidCall::set_op(std::string_view name) noexcept { store(name, op); }

void SaidCall::set_data(const Datatype& type, Count count) {
  const Signature signature = signature_of(type, count);
  elements = signature.elements;
  hash = signature.hash;
  store(signature_text(type, count, sizeof data - 1), data);
}

int SaidCall::compare(const SaidCall& other) const noexcept {
  if (std::strncmp(call, other.call, sizeof call) != 0) return MPI_ERR_OTHER;
  if (root != other.root) return MPI_ERR_ROOT;
  if (std::strncmp(op, other.op, sizeof op) != 0) return MPI_ERR_OP;
  if (elements != other.elements || hash != other.hash) return MPI_ERR_TYPE;
  return MPI_SUCCESS;
}

std::string SaidCall::text() const {
  std::string arguments;
  const auto add = [&](std::string_view text) {
    arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", text);
  };
  if (root != kNoRoot) add(fmt::format("root {}", root));
  if (op[0] != 0) add(op);
  if (data[0] != 0) add(data);
  return arguments.empty() ? std::string(call) : fmt::format("{} ({})", call, arguments);
}

}  // namespace brant::mpi
