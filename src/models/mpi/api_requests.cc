#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/mpi/calls.h"
#include "models/mpi/generalized_request.h"
#include "models/mpi/posting.h"
#include "models/mpi/statuses.h"
#include "models/mpi/typed_buffer.h"
#include "models/mpi/types/elements.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// Null, and persistent ones that were not started: there is nothing to wait for.
bool is_idle(const Request* request) noexcept { return request == nullptr || !request->active(); }

/// The program's handle of it goes.
int dispose_of(Request& request) noexcept {
  const int error = request.let_go();
  delete &request;
  return error;
}

/// Takes what has ended: its status, and an error class. The handle becomes null, or inactive.
int take(MPI_Request* handle, Request& request, MPI_Status* status) noexcept {
  const int error = request.finish();
  store_status(status, request.outcome);
  if (request.persistent) {
    request.rest();
    return error;
  }
  *handle = MPI_REQUEST_NULL;
  const int last_error = dispose_of(request);
  return error != MPI_SUCCESS ? error : last_error;
}

/// Tells the status of what has ended and stays. Its error is told by who takes it.
void show(Request& request, MPI_Status* status) noexcept {
  static_cast<void>(request.finish());
  store_status(status, request.outcome);
}

/// Errors of one request go to its communicator's handler.
int take_and_report(const char* function, MPI_Request* handle, Request& request, MPI_Status* status) noexcept {
  Communicator* communicator = request.communicator;
  if (communicator != nullptr) ++communicator->users;  // until the handler has been called
  const std::size_t bytes = request.outcome.bytes;
  const std::string fault = request.outcome.error != MPI_SUCCESS ? request.fault() : std::string();
  int error = take(handle, request, status);
  if (error == MPI_ERR_TRUNCATE) {
    error = call(function, communicator, [&] {
      fail(MPI_ERR_TRUNCATE, "a message is longer than the {} bytes that its receive has room for", bytes);
    });
  } else if (error != MPI_SUCCESS) {
    error = call(function, communicator, [&] {
      fail(error, "{}", fault.empty() ? std::string_view("the operation ended with an error") : fault);
    });
  }
  if (communicator != nullptr) drop_communicator(*communicator);
  return error;
}

std::vector<Request*> find_all(int count, MPI_Request handles[]) {
  require(count >= 0, MPI_ERR_COUNT, "the number of requests {} is negative", count);
  require(count == 0 || handles != nullptr, MPI_ERR_REQUEST, "the list of requests is null");
  std::vector<Request*> found;
  found.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) found.push_back(find_request(handles[i]));
  return found;
}

/// What the first one says of several that have failed.
void note_fault(const Request& request, std::string& fault) {
  if (request.outcome.error != MPI_SUCCESS && fault.empty()) fault = request.fault();
}

/// What all have ended with, or MPI_ERR_IN_STATUS, with the errors in the statuses.
int take_all(const std::vector<Request*>& requests, MPI_Request handles[], MPI_Status statuses[]) {
  bool failed = false;
  std::string fault;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    MPI_Status* status = statuses != MPI_STATUSES_IGNORE ? &statuses[i] : MPI_STATUS_IGNORE;
    int error = MPI_SUCCESS;
    if (is_idle(requests[i])) {
      store_empty_status(status);
    } else {
      note_fault(*requests[i], fault);
      error = take(&handles[i], *requests[i], status);
    }
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
    failed = failed || error != MPI_SUCCESS;
  }
  require(!failed, MPI_ERR_IN_STATUS, "some of {} requests ended with an error, which their statuses tell{}{}",
          requests.size(), fault.empty() ? "" : "; the first one: ", fault);
  return MPI_SUCCESS;
}

/// The communicator whose handler is called where several requests fail together: that of the first one.
Communicator* first_communicator(int count, MPI_Request handles[]) noexcept {
  for (int i = 0; i < count && handles != nullptr; ++i) {
    const auto* request = object_of<Request>(handles[i]);
    if (request != nullptr && request->communicator != nullptr) return request->communicator;
  }
  return nullptr;
}

/// Keeps a communicator while requests on it are taken.
class KeptCommunicator {
 public:
  explicit KeptCommunicator(Communicator* communicator) noexcept : communicator_(communicator) {
    if (communicator_ != nullptr) ++communicator_->users;
  }
  ~KeptCommunicator() {
    if (communicator_ != nullptr) drop_communicator(*communicator_);
  }
  KeptCommunicator(const KeptCommunicator&) = delete;
  KeptCommunicator& operator=(const KeptCommunicator&) = delete;
  [[nodiscard]] Communicator* get() const noexcept { return communicator_; }

 private:
  Communicator* const communicator_;
};

/// Looks at many requests again only where one of this rank's has ended since.
class Watch {
 public:
  explicit Watch(RankState& rank) noexcept : rank_(rank) {}
  template <typename Look>
  bool look(Look&& look_at_all) {
    if (looked_ && rank_.ended == seen_) return false;
    looked_ = true;
    seen_ = rank_.ended;
    return look_at_all();
  }

 private:
  RankState& rank_;
  bool looked_ = false;
  std::uint64_t seen_ = 0;
};

/// The index of one that has ended; MPI_UNDEFINED: none has, or there is nothing to wait for.
int find_ended(const std::vector<Request*>& requests) noexcept {
  const auto found = std::ranges::find_if(requests, [](const Request* r) { return !is_idle(r) && r->ended(); });
  return found != requests.end() ? static_cast<int>(found - requests.begin()) : MPI_UNDEFINED;
}

bool all_idle(const std::vector<Request*>& requests) noexcept { return std::ranges::all_of(requests, is_idle); }

/// None of them is under way.
bool all_ready(const std::vector<Request*>& requests) noexcept {
  return std::ranges::all_of(requests, [](const Request* r) { return r == nullptr || r->ready(); });
}

/// Takes all that have ended.
int take_some(const std::vector<Request*>& requests, MPI_Request handles[], int* outcount, int indices[],
              MPI_Status statuses[]) {
  int taken = 0;
  bool failed = false;
  std::string fault;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (is_idle(requests[i]) || !requests[i]->ended()) continue;
    MPI_Status* status = statuses != MPI_STATUSES_IGNORE ? &statuses[taken] : MPI_STATUS_IGNORE;
    note_fault(*requests[i], fault);
    const int error = take(&handles[i], *requests[i], status);
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = error;
    failed = failed || error != MPI_SUCCESS;
    indices[taken++] = static_cast<int>(i);
  }
  *outcount = taken;
  require(!failed, MPI_ERR_IN_STATUS, "some of {} requests ended with an error, which their statuses tell{}{}", taken,
          fault.empty() ? "" : "; the first one: ", fault);
  return MPI_SUCCESS;
}

}  // namespace

int wait(MPI_Request* request, MPI_Status* status) noexcept {
  return call("MPI_Wait", [&] {
    require_place(static_cast<const void*>(request), "request");
    Request* found = find_request(*request);
    if (is_idle(found)) {
      store_empty_status(status);
      return kSuccess;
    }
    current_rank().wait_for_end([&] { return found->ended(); });
    return take_and_report("MPI_Wait", request, *found, status);
  });
}

int test(MPI_Request* request, int* flag, MPI_Status* status) noexcept {
  return call("MPI_Test", [&] {
    require_place(static_cast<const void*>(request), "request");
    Request* found = find_request(*request);
    require_place(flag, "flag");
    *flag = 1;
    if (is_idle(found)) {
      store_empty_status(status);
      return kSuccess;
    }
    if (!found->ended()) current_rank().progress();
    *flag = found->ended() ? 1 : 0;
    return *flag != 0 ? take_and_report("MPI_Test", request, *found, status) : kSuccess;
  });
}

int waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]) noexcept {
  const KeptCommunicator owner(first_communicator(count, array_of_requests));
  return call("MPI_Waitall", owner.get(), [&] {
    const std::vector<Request*> requests = find_all(count, array_of_requests);
    for (const Request* request : requests) {
      if (!is_idle(request)) current_rank().wait_for_end([&] { return request->ended(); });
    }
    return take_all(requests, array_of_requests, array_of_statuses);
  });
}

int testall(int count, MPI_Request array_of_requests[], int* flag, MPI_Status array_of_statuses[]) noexcept {
  const KeptCommunicator owner(first_communicator(count, array_of_requests));
  return call("MPI_Testall", owner.get(), [&] {
    const std::vector<Request*> requests = find_all(count, array_of_requests);
    if (!all_ready(requests)) current_rank().progress();
    require_place(flag, "flag");
    *flag = all_ready(requests) ? 1 : 0;
    return *flag != 0 ? take_all(requests, array_of_requests, array_of_statuses) : kSuccess;
  });
}

int waitany(int count, MPI_Request array_of_requests[], int* indx, MPI_Status* status) noexcept {
  return call("MPI_Waitany", [&] {
    const std::vector<Request*> requests = find_all(count, array_of_requests);
    *indx = MPI_UNDEFINED;
    if (all_idle(requests)) {
      store_empty_status(status);
      return kSuccess;
    }
    Watch watch(current_rank());
    current_rank().wait_for_end(
        [&] { return watch.look([&] { return (*indx = find_ended(requests)) != MPI_UNDEFINED; }); });
    return take_and_report("MPI_Waitany", &array_of_requests[*indx], *requests[static_cast<std::size_t>(*indx)],
                           status);
  });
}

int testany(int count, MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status) noexcept {
  return call("MPI_Testany", [&] {
    const std::vector<Request*> requests = find_all(count, array_of_requests);
    *indx = MPI_UNDEFINED;
    require_place(flag, "flag");
    *flag = 1;
    if (all_idle(requests)) {
      store_empty_status(status);
      return kSuccess;
    }
    *indx = find_ended(requests);
    if (*indx == MPI_UNDEFINED) {
      current_rank().progress();
      *indx = find_ended(requests);
    }
    *flag = *indx != MPI_UNDEFINED ? 1 : 0;
    if (*flag == 0) return kSuccess;
    return take_and_report("MPI_Testany", &array_of_requests[*indx], *requests[static_cast<std::size_t>(*indx)],
                           status);
  });
}

int waitsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
             MPI_Status array_of_statuses[]) noexcept {
  const KeptCommunicator owner(first_communicator(incount, array_of_requests));
  return call("MPI_Waitsome", owner.get(), [&] {
    const std::vector<Request*> requests = find_all(incount, array_of_requests);
    *outcount = MPI_UNDEFINED;
    if (all_idle(requests)) return kSuccess;
    Watch watch(current_rank());
    current_rank().wait_for_end([&] { return watch.look([&] { return find_ended(requests) != MPI_UNDEFINED; }); });
    return take_some(requests, array_of_requests, outcount, array_of_indices, array_of_statuses);
  });
}

int testsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
             MPI_Status array_of_statuses[]) noexcept {
  const KeptCommunicator owner(first_communicator(incount, array_of_requests));
  return call("MPI_Testsome", owner.get(), [&] {
    const std::vector<Request*> requests = find_all(incount, array_of_requests);
    *outcount = MPI_UNDEFINED;
    if (all_idle(requests)) return kSuccess;
    if (find_ended(requests) == MPI_UNDEFINED) current_rank().progress();
    return take_some(requests, array_of_requests, outcount, array_of_indices, array_of_statuses);
  });
}

int request_get_status(MPI_Request request, int* flag, MPI_Status* status) noexcept {
  return call("MPI_Request_get_status", [&] {
    Request* found = find_request(request);
    require_place(flag, "flag");
    *flag = 1;
    if (is_idle(found)) return store_empty_status(status);
    if (!found->ended()) current_rank().progress();
    *flag = found->ended() ? 1 : 0;
    if (*flag != 0) show(*found, status);
  });
}

int request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag,
                           MPI_Status* array_of_statuses) noexcept {
  return call("MPI_Request_get_status_all", [&] {
    const std::vector<Request*> requests = find_all(count, const_cast<MPI_Request*>(array_of_requests));
    if (!all_ready(requests)) current_rank().progress();
    require_place(flag, "flag");
    *flag = all_ready(requests) ? 1 : 0;
    if (*flag == 0 || array_of_statuses == MPI_STATUSES_IGNORE) return;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      store_empty_status(&array_of_statuses[i]);
      if (is_idle(requests[i])) continue;
      show(*requests[i], &array_of_statuses[i]);
      array_of_statuses[i].MPI_ERROR = requests[i]->outcome.error;
    }
  });
}

int request_get_status_any(int count, const MPI_Request array_of_requests[], int* indx, int* flag,
                           MPI_Status* status) noexcept {
  return call("MPI_Request_get_status_any", [&] {
    const std::vector<Request*> requests = find_all(count, const_cast<MPI_Request*>(array_of_requests));
    *indx = MPI_UNDEFINED;
    require_place(flag, "flag");
    *flag = 1;
    if (all_idle(requests)) return store_empty_status(status);
    *indx = find_ended(requests);
    if (*indx == MPI_UNDEFINED) {
      current_rank().progress();
      *indx = find_ended(requests);
    }
    *flag = *indx != MPI_UNDEFINED ? 1 : 0;
    if (*flag != 0) show(*requests[static_cast<std::size_t>(*indx)], status);
  });
}

int request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                            MPI_Status* array_of_statuses) noexcept {
  return call("MPI_Request_get_status_some", [&] {
    const std::vector<Request*> requests = find_all(incount, const_cast<MPI_Request*>(array_of_requests));
    *outcount = MPI_UNDEFINED;
    if (all_idle(requests)) return;
    // Even if some have ended: they stay, and who waits for the others asks again and again.
    if (!all_ready(requests)) current_rank().progress();
    *outcount = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (is_idle(requests[i]) || !requests[i]->ended()) continue;
      show(*requests[i], array_of_statuses != MPI_STATUSES_IGNORE ? &array_of_statuses[*outcount] : MPI_STATUS_IGNORE);
      array_of_indices[(*outcount)++] = static_cast<int>(i);
    }
  });
}

int request_free(MPI_Request* request) noexcept {
  return call("MPI_Request_free", [&] {
    require_place(static_cast<const void*>(request), "request");
    Request* found = find_request(*request);
    require(found != nullptr, MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
    *request = MPI_REQUEST_NULL;
    if (found->ready() && !found->listens()) return dispose_of(*found);
    found->freed = true;
    return kSuccess;
  });
}

int cancel(MPI_Request* request) noexcept {
  return call("MPI_Cancel", [&] {
    require_place(static_cast<const void*>(request), "request");
    Request* found = find_request(*request);
    require(found != nullptr, MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL");
    const int error = found->active() ? found->cancel() : kSuccess;
    require(error == MPI_SUCCESS, error, "the program's function that cancels the request failed");
  });
}

int start(MPI_Request* request) noexcept {
  return call("MPI_Start", [&] {
    require_place(static_cast<const void*>(request), "request");
    Request* found = find_request(*request);
    require(found != nullptr && found->persistent, MPI_ERR_REQUEST, "the request is null, or not persistent");
    require(!found->active(), MPI_ERR_REQUEST, "the request is active: wait for it before it is started again");
    found->start();
  });
}

int startall(int count, MPI_Request array_of_requests[]) noexcept {
  for (int i = 0; i < count; ++i) {
    if (const int error = start(&array_of_requests[i]); error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

// Operations of the program
// -------------------------------------------------------------------------------------------------------------------

int grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                   MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request) noexcept {
  return call("MPI_Grequest_start", [&] {
    require_place(static_cast<const void*>(request), "request");
    hand_out(std::make_unique<GeneralizedRequest>(current_rank(), query_fn, free_fn, cancel_fn, extra_state), false,
             request);
  });
}

int grequest_complete(MPI_Request request) noexcept {
  return call("MPI_Grequest_complete", [&] {
    auto* found = dynamic_cast<GeneralizedRequest*>(find_request(request));
    require(found != nullptr, MPI_ERR_REQUEST, "the request is not one of MPI_Grequest_start");
    require(!found->ended(), MPI_ERR_REQUEST, "the request is complete already");
    found->end(MPI_SUCCESS);
  });
}

// Statuses
// -------------------------------------------------------------------------------------------------------------------

int test_cancelled(const MPI_Status* status, int* flag) noexcept {
  *flag = words_of(*status).cancelled;
  return MPI_SUCCESS;
}

int status_set_cancelled(MPI_Status* status, int flag) noexcept {
  set_words(*status, {words_of(*status).bytes, flag != 0 ? 1 : 0});
  return MPI_SUCCESS;
}

int get_count(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) noexcept {
  return call("MPI_Get_count", [&] {
    require_place(status, "status");
    *count = items_in(datatype_of(datatype), words_of(*status).bytes);
  });
}

int status_set_source(MPI_Status* status, int source) noexcept {
  status->MPI_SOURCE = source;
  return MPI_SUCCESS;
}
int status_set_tag(MPI_Status* status, int tag) noexcept {
  status->MPI_TAG = tag;
  return MPI_SUCCESS;
}
int status_set_error(MPI_Status* status, int err) noexcept {
  status->MPI_ERROR = err;
  return MPI_SUCCESS;
}
int status_get_source(const MPI_Status* status, int* source) noexcept {
  *source = status->MPI_SOURCE;
  return MPI_SUCCESS;
}
int status_get_tag(const MPI_Status* status, int* tag) noexcept {
  *tag = status->MPI_TAG;
  return MPI_SUCCESS;
}
int status_get_error(const MPI_Status* status, int* err) noexcept {
  *err = status->MPI_ERROR;
  return MPI_SUCCESS;
}

}  // namespace brant::mpi::api
