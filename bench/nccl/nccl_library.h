#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// NCCL, NVIDIA's library of collectives, as a rival in benchmarks: found and loaded at run time, never linked. This
/// folder is the only one that knows it.
namespace brant::bench::nccl {

struct Communicator;

/// By which two processes find each other: made by one of them, told to the other. As NCCL's `ncclUniqueId`, which its
/// functions take by value.
struct UniqueId {
  char bytes[128];
};

/// `ncclResult_t`, as far as it is told apart here.
enum class Outcome : int { success = 0 };

/// `ncclDataType_t` and `ncclRedOp_t`: messages are bytes here, and collectives are of floats and add up.
enum class DataType : int { bytes = 1, f32 = 7 };
enum class ReduceOp : int { sum = 0 };

/// The functions that are used, by the signatures of NCCL's public interface (2.7 and newer have all of them but those
/// that may be null). A CUDA stream is a pointer to NCCL: the driver's and the runtime's are the same. Counts are of
/// elements, and of one block where each process gives or gets blocks.
struct Library {
  Outcome (*get_version)(int* version) = nullptr;
  Outcome (*get_unique_id)(UniqueId* id) = nullptr;
  Outcome (*comm_init_rank)(Communicator** comm, int ranks, UniqueId id, int rank) = nullptr;
  Outcome (*comm_destroy)(Communicator* comm) = nullptr;
  Outcome (*comm_abort)(Communicator* comm) = nullptr;
  Outcome (*send)(const void* data, std::size_t count, DataType type, int peer, Communicator* comm,
                  void* stream) = nullptr;
  Outcome (*recv)(void* data, std::size_t count, DataType type, int peer, Communicator* comm, void* stream) = nullptr;
  Outcome (*all_reduce)(const void* in, void* out, std::size_t count, DataType type, ReduceOp op, Communicator* comm,
                        void* stream) = nullptr;
  Outcome (*broadcast)(const void* in, void* out, std::size_t count, DataType type, int root, Communicator* comm,
                       void* stream) = nullptr;
  Outcome (*all_gather)(const void* in, void* out, std::size_t count, DataType type, Communicator* comm,
                        void* stream) = nullptr;
  Outcome (*reduce_scatter)(const void* in, void* out, std::size_t count, DataType type, ReduceOp op,
                            Communicator* comm, void* stream) = nullptr;
  Outcome (*all_to_all)(const void* in, void* out, std::size_t count, DataType type, Communicator* comm,
                        void* stream) = nullptr;  ///< Null before NCCL 2.28.
  Outcome (*group_start)() = nullptr;
  Outcome (*group_end)() = nullptr;
  const char* (*get_error_string)(Outcome outcome) = nullptr;
  const char* (*get_last_error)(Communicator* comm) = nullptr;  ///< Null before NCCL 2.13.

  std::string path;     ///< The file it was loaded from.
  std::string version;  ///< "2.28.3"
  /// It is no NCCL but the stand-in of the tests, which may be given memory of emulated devices.
  bool stands_in = false;
};

/// Loads on the first call, and stays. Thread-safe. Throws Error: not_found with all that was tried and the cure;
/// version_mismatch for a library without the functions above.
const Library& library();

/// Has NCCL leave out the sums that switches of NVLink do (NVLS), as brant does, unless the environment decides
/// (NCCL_NVLS_ENABLE). Before NCCL is loaded, and while no other thread is there.
void leave_nvls_out();
/// What holds, for people: "NCCL_NVLS_ENABLE=0".
std::string nvls_setting();

/// Where to look, as the environment says.
struct Surroundings {
  std::string wanted;              ///< BRANT_NCCL: a file or a folder. Nothing else is tried then.
  std::string path;                ///< PATH: a folder with a python has that python's packages beside it.
  std::vector<std::string> trees;  ///< VIRTUAL_ENV, CONDA_PREFIX, ~/.local: each has lib/python3.x/site-packages.

  static Surroundings from_environment();
};

/// The files to try, best first. "libnccl.so.2" alone stands for the loader's own search (LD_LIBRARY_PATH, ldconfig).
std::vector<std::string> candidates(const Surroundings& surroundings);

/// NCCL's number of a version in words: 22803 is "2.28.3", and 2708, as it was counted before 2.9, "2.7.8".
std::string version_text(int code);

}  // namespace brant::bench::nccl
