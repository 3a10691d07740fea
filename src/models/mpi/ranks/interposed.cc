// What brant-ranks exports in front of the C library, for the images in it. Calls that do not come from a rank, or are
// none of its business, pass through.

#include <dlfcn.h>
#include <getopt.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "models/mpi/ranks/image_program.h"

namespace {

using brant::mpi::ExitFunctions;
using brant::mpi::ImageRank;
using brant::mpi::OptionParsing;
using brant::mpi::ThreadLocalWindow;

template <typename Function>
Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// A child that a rank forked is no rank: it ends as a process.
const pid_t process = ::getpid();

ImageRank* ending_rank() noexcept { return ::getpid() == process ? brant::mpi::running_rank() : nullptr; }

ImageRank* rank_of(const void* address) noexcept {
  if (ImageRank* running = brant::mpi::running_rank(); running != nullptr && running->image().holds(address))
    return running;
  const brant::mpi::ImageProgram* program = brant::mpi::image_program();
  return program == nullptr ? nullptr : program->owner_of(address);
}

/// What a thread that a rank started is to run.
struct ThreadStart {
  void* (*function)(void*);
  void* argument;
  ImageRank* owner;
};

void* run_thread(void* passed) {
  const ThreadStart start = *std::unique_ptr<ThreadStart>(static_cast<ThreadStart*>(passed));
  ThreadLocalWindow::owner() = start.owner;
  start.owner->first_thread_locals().load();
  return start.function(start.argument);
}

int parse_options(const OptionParsing::Call& call) {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->options().parse(call);
  return call.function(call, call.argc, call.argv);
}

using ShortOptions = int(int, char* const*, const char*);
using LongOptions = int(int, char* const*, const char*, const option*, int*);

/// `Real` calls the C library's function.
template <typename Real>
int parse_short(Real, int argc, char* const* argv, const char* options) {
  return parse_options({.function = [](const OptionParsing::Call& call, int count,
                                       char* const* arguments) { return Real()(count, arguments, call.options); },
                        .argc = argc,
                        .argv = argv,
                        .options = options});
}

template <typename Real>
int parse_long(Real, int argc, char* const* argv, const char* options, const option* long_options, int* index) {
  return parse_options({.function =
                            [](const OptionParsing::Call& call, int count, char* const* arguments) {
                              return Real()(count, arguments, call.options, call.long_options, call.long_index);
                            },
                        .argc = argc,
                        .argv = argv,
                        .options = options,
                        .long_options = long_options,
                        .long_index = index});
}

}  // namespace

// The names are the C library's.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

int __libc_start_main(ImageRank::Main main, int argc, char** argv, ImageRank::Main init, void (*fini)(),
                      void (*linker_fini)(), void* stack_end) {
  if (ImageRank* rank = brant::mpi::running_rank()) rank->start(main, argc, argv, init);
  return next<decltype(__libc_start_main)>("__libc_start_main")(main, argc, argv, init, fini, linker_fini, stack_end);
}

void exit(int code) {
  if (ImageRank* rank = ending_rank()) rank->exit(code);
  next<void(int)>("exit")(code);
  __builtin_unreachable();
}

void _exit(int code) {
  if (ImageRank* rank = ending_rank()) rank->leave(code & 0xff);
  next<void(int)>("_exit")(code);
  __builtin_unreachable();
}

void _Exit(int code) noexcept { _exit(code); }

/// Its functions, those given to at_quick_exit, do not run.
void quick_exit(int code) noexcept {
  if (ImageRank* rank = ending_rank()) rank->leave(code & 0xff);
  next<void(int)>("quick_exit")(code);
  __builtin_unreachable();
}

/// Of the thread that all ranks share, the C library's would end them all.
void pthread_exit(void* value) {
  if (ImageRank* rank = ending_rank()) rank->exit(0);
  next<void(void*)>("pthread_exit")(value);
  __builtin_unreachable();
}

int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept {
  if (ImageRank* rank = rank_of(library)) {
    rank->exit_functions().add({.plain = function, .argument = argument});
    return 0;
  }
  return next<decltype(__cxa_atexit)>("__cxa_atexit")(function, argument, library);
}

int __cxa_at_quick_exit(void (*function)(void*), void* library) noexcept {
  return rank_of(library) != nullptr ? 0
                                     : next<decltype(__cxa_at_quick_exit)>("__cxa_at_quick_exit")(function, library);
}

int on_exit(void (*function)(int, void*), void* argument) noexcept {
  if (ImageRank* rank = rank_of(reinterpret_cast<const void*>(function))) {
    rank->exit_functions().add({.with_code = function, .argument = argument});
    return 0;
  }
  return next<decltype(on_exit)>("on_exit")(function, argument);
}

int __cxa_thread_atexit_impl(void (*function)(void*), void* argument, void* library) noexcept {
  ImageRank* rank = brant::mpi::running_rank();
  if (rank != nullptr && rank->image().holds(library)) {
    rank->exit_functions().add_thread_local({.plain = function, .argument = argument});
    return 0;
  }
  return next<decltype(__cxa_thread_atexit_impl)>("__cxa_thread_atexit_impl")(function, argument, library);
}

/// std::ios_base::sync_with_stdio. It would end the buffers that the images' copies of std::cout and its like write to,
/// and give new ones to the library's own: for a rank the streams stay as they are.
bool _ZNSt8ios_base15sync_with_stdioEb(bool with) {
  return brant::mpi::running_rank() != nullptr || next<bool(bool)>("_ZNSt8ios_base15sync_with_stdioEb")(with);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
  static auto* const real = next<decltype(pthread_create)>("pthread_create");
  ImageRank* owner = brant::mpi::running_rank();
  if (owner == nullptr) owner = ThreadLocalWindow::owner();
  if (owner == nullptr) return real(thread, attributes, function, argument);
  auto start = std::make_unique<ThreadStart>(ThreadStart{function, argument, owner});
  const int result = real(thread, attributes, run_thread, start.get());
  // The thread's from here on.
  if (result == 0) static_cast<void>(start.release());  // NOLINT(bugprone-unused-return-value)
  return result;
}

int rand() noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return static_cast<int>(rank->c_library().random());
  return next<int()>("rand")();
}

void srand(unsigned seed) noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().seed_random(seed);
  next<void(unsigned)>("srand")(seed);
}

long random() noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().random();
  return next<long()>("random")();
}

void srandom(unsigned seed) noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().seed_random(seed);
  next<void(unsigned)>("srandom")(seed);
}

double drand48() noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().uniform();
  return next<double()>("drand48")();
}

long lrand48() noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().non_negative();
  return next<long()>("lrand48")();
}

long mrand48() noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().with_sign();
  return next<long()>("mrand48")();
}

void srand48(long seed) noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().seed_uniform(seed);
  next<void(long)>("srand48")(seed);
}

char* strtok(char* text, const char* separators) noexcept {
  if (ImageRank* rank = brant::mpi::running_rank()) return rank->c_library().token(text, separators);
  return next<char*(char*, const char*)>("strtok")(text, separators);
}

int getopt(int argc, char* const* argv, const char* options) noexcept {
  return parse_short([](auto... given) { return next<ShortOptions>("getopt")(given...); }, argc, argv, options);
}

/// getopt of programs that ask for POSIX alone.
int __posix_getopt(int argc, char* const* argv, const char* options) noexcept {
  return parse_short([](auto... given) { return next<ShortOptions>("__posix_getopt")(given...); }, argc, argv, options);
}

int getopt_long(int argc, char* const* argv, const char* options, const option* long_options, int* index) noexcept {
  return parse_long([](auto... given) { return next<LongOptions>("getopt_long")(given...); }, argc, argv, options,
                    long_options, index);
}

int getopt_long_only(int argc, char* const* argv, const char* options, const option* long_options,
                     int* index) noexcept {
  return parse_long([](auto... given) { return next<LongOptions>("getopt_long_only")(given...); }, argc, argv, options,
                    long_options, index);
}

}  // extern "C"
#pragma GCC visibility pop
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
