#include <unordered_map>
#include <vector>

#include "models/mpi/calls.h"
#include "mpi_generated/api.h"

/// Handles as the integers that Fortran has for them: predefined ones are their own numbers, and objects get one when
/// they are asked for, which they keep.
namespace brant::mpi::api {

namespace {

class HandleNumbers {
 public:
  int number_of(void* handle) {
    if (is_predefined(handle)) return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle));
    const auto [place, is_new] = numbers_.try_emplace(handle, static_cast<int>(kPredefinedMax + 1 + handles_.size()));
    if (is_new) handles_.push_back(handle);
    return place->second;
  }
  /// Null: nobody has this number.
  [[nodiscard]] void* handle_of(int number) const noexcept {
    if (number < 0) return nullptr;
    const auto value = static_cast<std::uintptr_t>(number);
    if (value <= kPredefinedMax) return reinterpret_cast<void*>(value);
    const std::size_t place = value - kPredefinedMax - 1;
    return place < handles_.size() ? handles_[place] : nullptr;
  }

 private:
  std::unordered_map<void*, int> numbers_;
  std::vector<void*> handles_;
};

HandleNumbers& numbers() {
  static HandleNumbers known;
  return known;
}

template <typename Handle>
int number_of(Handle handle) noexcept {
  return numbers().number_of(static_cast<void*>(handle));
}

template <typename Handle>
Handle handle_of_number(int number) noexcept {
  return static_cast<Handle>(numbers().handle_of(number));
}

}  // namespace

int comm_toint(MPI_Comm comm) noexcept { return number_of(comm); }
int errhandler_toint(MPI_Errhandler errhandler) noexcept { return number_of(errhandler); }
int group_toint(MPI_Group group) noexcept { return number_of(group); }
int info_toint(MPI_Info info) noexcept { return number_of(info); }
int message_toint(MPI_Message message) noexcept { return number_of(message); }
int op_toint(MPI_Op op) noexcept { return number_of(op); }
int request_toint(MPI_Request request) noexcept { return number_of(request); }
int session_toint(MPI_Session session) noexcept { return number_of(session); }
int type_toint(MPI_Datatype datatype) noexcept { return number_of(datatype); }
int win_toint(MPI_Win win) noexcept { return number_of(win); }
int file_toint(MPI_File file) noexcept { return number_of(file); }

MPI_Comm comm_fromint(int comm) noexcept { return handle_of_number<MPI_Comm>(comm); }
MPI_Errhandler errhandler_fromint(int errhandler) noexcept { return handle_of_number<MPI_Errhandler>(errhandler); }
MPI_Group group_fromint(int group) noexcept { return handle_of_number<MPI_Group>(group); }
MPI_Info info_fromint(int info) noexcept { return handle_of_number<MPI_Info>(info); }
MPI_Message message_fromint(int message) noexcept { return handle_of_number<MPI_Message>(message); }
MPI_Op op_fromint(int op) noexcept { return handle_of_number<MPI_Op>(op); }
MPI_Request request_fromint(int request) noexcept { return handle_of_number<MPI_Request>(request); }
MPI_Session session_fromint(int session) noexcept { return handle_of_number<MPI_Session>(session); }
MPI_Datatype type_fromint(int datatype) noexcept { return handle_of_number<MPI_Datatype>(datatype); }
MPI_Win win_fromint(int win) noexcept { return handle_of_number<MPI_Win>(win); }
MPI_File file_fromint(int file) noexcept { return handle_of_number<MPI_File>(file); }

}  // namespace brant::mpi::api
