// What brant uses of NCCL, for tests: FAKE_NCCL names the function that fails, or "hang" for two processes that never
// meet. Transfers and collectives move nothing; FAKE_NCCL_LOG names a file that gets a line for each call.
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

struct Id {
  char bytes[128];
};

constexpr int kUnhandledCudaError = 1;

void note(const std::string& line) {
  const char* name = std::getenv("FAKE_NCCL_LOG");
  if (name == nullptr) return;
  std::FILE* file = std::fopen(name, "a");
  if (file == nullptr) return;
  std::fputs((line + "\n").c_str(), file);
  std::fclose(file);
}

bool is(const char* what) {
  const char* wanted = std::getenv("FAKE_NCCL");
  return wanted != nullptr && std::string(wanted) == what;
}

int answer(const char* call) {
  note(call);
  return is(call) ? kUnhandledCudaError : 0;
}

int transfer(const char* call, std::size_t count, int type, int peer, void* stream) {
  note(std::string(call) + " " + std::to_string(count) + " of type " + std::to_string(type) + " peer " +
       std::to_string(peer) + (stream != nullptr ? " on a stream" : ""));
  return is(call) ? kUnhandledCudaError : 0;
}

int collective(const char* call, std::size_t count, int type, void* stream) {
  note(std::string(call) + " " + std::to_string(count) + " of type " + std::to_string(type) +
       (stream != nullptr ? " on a stream" : ""));
  return is(call) ? kUnhandledCudaError : 0;
}

int the_communicator = 0;

}  // namespace

// The names are those that NCCL exports.
// NOLINTBEGIN(readability-identifier-naming)
#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int ncclGetVersion(int* version) {
  *version = 22803;
  return 0;
}
FAKE int ncclGetUniqueId(Id* id) {
  id->bytes[0] = 7;
  id->bytes[127] = 9;
  return answer("ncclGetUniqueId");
}
FAKE int ncclCommInitRank(void** comm, int ranks, Id id, int rank) {
  note("ncclCommInitRank " + std::to_string(rank) + " of " + std::to_string(ranks) + " id " +
       std::to_string(id.bytes[0]) + " " + std::to_string(id.bytes[127]));
  if (is("hang")) ::sleep(3600);
  *comm = &the_communicator;
  return is("ncclCommInitRank") ? kUnhandledCudaError : 0;
}
FAKE int ncclCommDestroy(void* comm) {
  return answer(comm == &the_communicator ? "ncclCommDestroy" : "destroyed none");
}
FAKE int ncclCommAbort(void* comm) { return answer(comm == &the_communicator ? "ncclCommAbort" : "aborted none"); }
FAKE int ncclSend(const void*, std::size_t count, int type, int peer, void*, void* stream) {
  return transfer("ncclSend", count, type, peer, stream);
}
FAKE int ncclRecv(void*, std::size_t count, int type, int peer, void*, void* stream) {
  return transfer("ncclRecv", count, type, peer, stream);
}
FAKE int ncclAllReduce(const void*, void*, std::size_t count, int type, int, void*, void* stream) {
  return collective("ncclAllReduce", count, type, stream);
}
FAKE int ncclReduceScatter(const void*, void*, std::size_t count, int type, int, void*, void* stream) {
  return collective("ncclReduceScatter", count, type, stream);
}
FAKE int ncclBroadcast(const void*, void*, std::size_t count, int type, int, void*, void* stream) {
  return collective("ncclBroadcast", count, type, stream);
}
FAKE int ncclAllGather(const void*, void*, std::size_t count, int type, void*, void* stream) {
  return collective("ncclAllGather", count, type, stream);
}
#ifndef FAKE_NCCL_BEFORE_2_28
FAKE int ncclAlltoAll(const void*, void*, std::size_t count, int type, void*, void* stream) {
  return collective("ncclAlltoAll", count, type, stream);
}
#endif
FAKE int ncclGroupStart() { return answer("ncclGroupStart"); }
FAKE int ncclGroupEnd() { return answer("ncclGroupEnd"); }
FAKE const char* ncclGetErrorString(int outcome) { return outcome == 0 ? "no error" : "unhandled cuda error"; }
FAKE const char* ncclGetLastError(void*) { return "the fake was told to fail"; }
/// Says to brant that it may be given memory of emulated devices.
FAKE int brantNcclStandIn() { return 1; }
// NOLINTEND(readability-identifier-naming)
