#include "models/mpi/calls.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "models/mpi/files/file.h"
#include "models/mpi/last_error.h"
#include "models/mpi/windows/window.h"

namespace brant::mpi {

std::string name_of(const Communicator& communicator) {
  if (!communicator.name.empty()) return communicator.name;
  if (!communicator.between_groups()) return fmt::format("a communicator of {} ranks", communicator.size());
  return fmt::format("a communicator of {} and {} ranks", communicator.size(), communicator.peers().size());
}

std::string name_of_peers(const Communicator& communicator) {
  return communicator.between_groups() ? "the other group of " + name_of(communicator) : name_of(communicator);
}

namespace {

std::string name_of(const Window& window) {
  return window.name.empty() ? fmt::format("a window of {} ranks", window.size()) : window.name;
}

std::string name_of(const File& file) {
  return fmt::format("the file '{}', which {} ranks have opened", file.name(), file.communicator.size());
}

constexpr const char* kNoHandlerSet =
    "no error handler was set: a program that sets MPI_ERRORS_RETURN for it gets the error instead";
constexpr const char* kNoHandlerExists =
    "errors that belong to no communicator, window or session go to the handler of MPI_COMM_SELF, which is there "
    "between MPI_Init and MPI_Finalize";

/// `where()`: "" or " on rank 3 of what was called".
template <typename Where>
[[noreturn]] void end_with(const char* function, const Where& where, const CallError& error, const char* why) noexcept {
  std::string text;
  try {
    const char* class_name = error_class_name(error.error_class());
    text = fmt::format("brant MPI: {} failed{}: {}{}({}). The job ends, since {}.", function, where(), error.what(),
                       *error.what() != 0 ? " " : "",
                       class_name != nullptr ? class_name : std::to_string(error.error_class()), why);
  } catch (const std::exception&) {
    text = "brant MPI: a call failed, and there is no memory to say which";
  }
  end_job(1, text);
}

/// Which rank of the job it is; nothing before that is known.
std::string text_of_rank() {
  return process() != nullptr ? fmt::format(" on rank {}", current_rank().id.value) : std::string();
}

/// `handle`: what a function of the program gets.
template <typename Where, typename Handle>
int hand_over_to(const ErrorHandler& handler, const Where& where, Handle handle, const char* function,
                 const CallError& error) noexcept {
  int code = error.error_class();
  note_last_error(error);
  switch (handler.action) {
    case ErrorHandler::Action::give_back: return code;
    case ErrorHandler::Action::call:
      handler.bound.call(handler.bound.function, static_cast<void*>(&handle), &code);
      return code;
    default: end_with(function, where, error, kNoHandlerSet);
  }
}

/// `owner`: a communicator, a window or a file, in which this rank has a number.
template <typename Owner>
auto text_of(const Owner& owner, int rank) {
  return [&owner, rank] { return fmt::format(" on rank {} of {}", rank, name_of(owner)); };
}

}  // namespace

int hand_over(Communicator* communicator, const char* function, const CallError& error) noexcept {
  Communicator* owner = communicator;
  if (owner == nullptr && is_open() && current_rank().has_world()) owner = current_rank().self.get();
  if (owner == nullptr) end_with(function, text_of_rank, error, kNoHandlerExists);
  return hand_over_to(*owner->handler, text_of(*owner, owner->rank), handle_of_communicator(*owner), function, error);
}

int hand_over(Window* window, const char* function, const CallError& error) noexcept {
  if (window == nullptr) return hand_over(static_cast<Communicator*>(nullptr), function, error);
  return hand_over_to(*window->handler, text_of(*window, window->communicator.rank), handle_of<MPI_Win>(*window),
                      function, error);
}

int hand_over(Session* session, const char* function, const CallError& error) noexcept {
  if (session == nullptr) return hand_over(static_cast<Communicator*>(nullptr), function, error);
  const auto where = [] { return text_of_rank() + " in a session"; };
  return hand_over_to(*session->handler, where, handle_of<MPI_Session>(*session), function, error);
}

int hand_over(const Unmade* unmade, const char* function, const CallError& error) noexcept {
  return hand_over_to(unmade->handler, text_of_rank, unmade->handle, function, error);
}

/// What belongs to no file has the handler of MPI_FILE_NULL.
int hand_over(File* file, const char* function, const CallError& error) noexcept {
  if (file == nullptr)
    return hand_over_to(current_rank().files.handler(), text_of_rank, MPI_FILE_NULL, function, error);
  return hand_over_to(*file->handler, text_of(*file, file->communicator.rank), handle_of<MPI_File>(*file), function,
                      error);
}

void end_outside(const char* function) noexcept {
  try {
    end_job(1, fmt::format("brant MPI: {} was called before MPI_Init or after MPI_Finalize, and without a session",
                           function));
  } catch (const std::exception&) {
    end_job(1, "brant MPI: a function was called before MPI_Init or after MPI_Finalize, and without a session");
  }
}

Communicator* find_communicator(MPI_Comm handle) noexcept {
  if (handle == MPI_COMM_WORLD) return current_rank().has_world() ? current_rank().world.get() : nullptr;
  if (handle == MPI_COMM_SELF) return current_rank().has_world() ? current_rank().self.get() : nullptr;
  return object_of<Communicator>(handle);
}

Communicator& communicator_of(MPI_Comm handle) {
  Communicator* found = find_communicator(handle);
  if (found == nullptr) fail_without_communicator(handle);
  return *found;
}

void fail_without_communicator(MPI_Comm handle) {
  const bool is_of_world = handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF;
  require(!is_of_world, MPI_ERR_COMM,
          "{} is there between MPI_Init and MPI_Finalize alone: with sessions, MPI_Comm_create_from_group makes one of "
          "the group of {}",
          handle == MPI_COMM_WORLD ? "MPI_COMM_WORLD" : "MPI_COMM_SELF",
          handle == MPI_COMM_WORLD ? "mpi://WORLD" : "mpi://SELF");
  fail(MPI_ERR_COMM, "the communicator is MPI_COMM_NULL, or none that exists");
}

MPI_Comm handle_of_communicator(Communicator& communicator) noexcept {
  if (&communicator == current_rank().world.get()) return MPI_COMM_WORLD;
  if (&communicator == current_rank().self.get()) return MPI_COMM_SELF;
  return handle_of<MPI_Comm>(communicator);
}

void throw_late(Communicator& communicator) {
  const std::unique_ptr<CallError> late = std::move(communicator.late);
  throw CallError(*late);
}

SharedMembers shared_members_of(MPI_Group handle) {
  static const auto kEmpty = std::make_shared<const Members>(std::vector<RankId>{});
  if (handle == MPI_GROUP_EMPTY) return kEmpty;
  const auto* group = object_of<Group>(handle);
  require(group != nullptr, MPI_ERR_GROUP, "the group is MPI_GROUP_NULL, or none that exists");
  return group->members;
}

std::uint64_t session_number_of(MPI_Group handle) noexcept {
  const auto* group = object_of<Group>(handle);
  return group != nullptr ? group->session : Sessions::kNone;
}

Request* find_request(MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL) return nullptr;
  auto* request = object_of<Request>(handle);
  require(request != nullptr, MPI_ERR_REQUEST, "the request is none that exists");
  return request;
}

void require_key(int number) {
  require(process()->key_values().find(number) != nullptr, MPI_ERR_KEYVAL,
          "{} is no key of the program, or one that it has freed", number);
}

const Members& members_of(MPI_Group handle) { return *shared_members_of(handle); }

Info& info_of(MPI_Info handle) {
  auto* info = object_of<Info>(handle);
  require(info != nullptr, MPI_ERR_INFO, "the info object is MPI_INFO_NULL, or none that can be used so");
  return *info;
}

MPI_Info publish_copy(const Info& info) {
  auto copy = std::make_unique<Info>();
  copy->entries = info.entries;
  return handle_of<MPI_Info>(*copy.release());
}

MPI_Group publish_group(SharedMembers members, std::uint64_t session) {
  return handle_of<MPI_Group>(*std::make_unique<Group>(std::move(members), session).release());
}

std::string_view object_name(const char* name) noexcept {
  return std::string_view(name).substr(0, MPI_MAX_OBJECT_NAME - 1);
}

// Names of communicators are made where they are told, not in every call: those of most are put together for that.

void require_rank(const Communicator& communicator, int rank, const char* what) {
  if (communicator.peers().has(rank)) return;
  fail(MPI_ERR_RANK, "{} {} is outside {}, which has ranks 0 to {}", what, rank, name_of_peers(communicator),
       communicator.peers().size() - 1);
}

void require_root(const Communicator& communicator, int root) {
  const bool special = communicator.between_groups() && (root == MPI_ROOT || root == MPI_PROC_NULL);
  if (special || communicator.peers().has(root)) return;
  fail(MPI_ERR_ROOT, "the root {} is outside {}, which has ranks 0 to {}", root, name_of_peers(communicator),
       communicator.peers().size() - 1);
}

void require_one_group(const Communicator& communicator) {
  if (!communicator.between_groups()) return;
  fail(MPI_ERR_COMM,
       "{} is between two groups: this function takes communicators of one (MPI_Intercomm_merge makes one)",
       name_of(communicator));
}

void require_two_groups(const Communicator& communicator) {
  if (communicator.between_groups()) return;
  fail(MPI_ERR_COMM, "{} has one group: this function takes communicators between two (MPI_Intercomm_create makes one)",
       name_of(communicator));
}

void require_place(const void* place, const char* what) {
  require(place != nullptr, MPI_ERR_ARG, "{} is null: it must say where the result goes", what);
}

void store_text(std::string_view text, char* place, int room, int* length) noexcept {
  const std::size_t stored = std::min(text.size(), static_cast<std::size_t>(std::max(room, 1) - 1));
  std::memcpy(place, text.data(), stored);
  place[stored] = 0;
  if (length != nullptr) *length = static_cast<int>(stored);
}

}  // namespace brant::mpi
