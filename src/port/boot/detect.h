#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace brant::port {

/// Variables by name, as a launcher left them.
using Environment = std::map<std::string, std::string, std::less<>>;

/// The variables of this process. Not to be called while another thread changes them.
Environment process_environment();

enum class Starter {
  nobody,      ///< A job of one process.
  brant_run,   ///< `brant run`, or a descendant of a rank of it.
  pmix,        ///< A PMIx server: mpirun, prterun, srun --mpi=pmix.
  pmi,         ///< A launcher that speaks PMI-1 over a socket: MPICH's mpiexec, srun --mpi=pmi2, flux run.
  torchrun,    ///< An agent of torchrun that keeps a store for its processes.
  not_spoken,  ///< A launcher of several processes whose protocol brant does not speak.
};

/// Who started this process, and why that is believed.
struct Detection {
  Starter starter = Starter::nobody;
  std::string launcher;               ///< For not_spoken: its name, for error texts.
  std::string cure;                   ///< For not_spoken, where there is one of its own: what to do.
  std::vector<std::string> evidence;  ///< Every mark of a launcher that is there; the first one decided.
};

/// Decides from the variables alone; `launcher_socket` says whether BRANT_BOOT_FD is an open socket of `brant run`.
/// A process that was started with others is never taken for a job of one. Inside an allocation the variables of Slurm
/// name the allocation, or the step that runs a daemon of mpirun, so they count only for a step of several tasks that
/// no other launcher left its marks in.
Detection detect_starter(const Environment& environment, bool launcher_socket);

/// The same for this process.
Detection detect_starter();

}  // namespace brant::port
