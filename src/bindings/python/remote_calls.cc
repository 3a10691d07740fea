#include "bindings/python/remote_calls.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <coroutine>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "bindings/python/call.h"
#include "bindings/python/calling.h"
#include "bindings/python/errors.h"
#include "bindings/python/make.h"
#include "bindings/python/process.h"
#include "bindings/python/running.h"
#include "brant/ops/rpc.h"

namespace nb = nanobind;

namespace brant::python {
namespace {

void run_here(ReadArchive& arguments, const remote::Invocation& invocation);

struct CallOfPython {};
constinit remote::Function the_function{"a function of Python", "bytes(bytes)", &typeid(CallOfPython), &run_here};
[[maybe_unused]] const bool enrolled = remote::enroll(the_function);

/// A call of another process, from the moment it comes until it is answered. It lies in the frame of `serve`.
class ServedCall {
 public:
  ServedCall(const remote::Invocation& invocation, ReadArchive arguments) noexcept;
  ServedCall(const ServedCall&) = delete;
  ServedCall& operator=(const ServedCall&) = delete;
  ~ServedCall();

  /// Its turn has come: calls the function. The coroutine that an async function is goes on beside the others; null:
  /// the call is answered.
  [[nodiscard]] Running* begin() noexcept;
  /// Takes over `result`; null: an exception is set.
  void answer(PyObject* result) noexcept;
  /// The program ends before the function has. Destroys it.
  void drop() noexcept;
  [[nodiscard]] bool is_in_function() const noexcept { return in_function_; }

  ListHook<ServedCall> due_hook;   ///< Among those whose turn has not come.
  ListHook<ServedCall> open_hook;  ///< Among all.
  std::coroutine_handle<> frame;

 private:
  [[nodiscard]] PyObject* call();
  void send(CallPacker& packer) const;
  void tell_failure() noexcept;

  remote::Invocation invocation_;
  ReadArchive arguments_;
  nb::object name_;
  std::unique_ptr<Running> running_;
  bool in_function_ = false;
};

/// The calls of this process. They come in progress, which may run without the GIL, and inside of what other parts of
/// the bindings do; they are run in the process's turns, as everything of Python is.
class Calls {
 public:
  /// Never destroyed, as Process.
  static Calls& get() {
    static auto* const only = new Calls;
    return *only;
  }

  /// `turn` is what the process is told to go on with.
  void begin(Runtime& runtime, Awaitable& turn) {
    turn_ = &turn;
    const Rpc takes_calls(runtime);
  }
  void close() noexcept {
    closed_ = true;
    while (ServedCall* call = first_to_drop()) call->drop();
  }
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

  void enter(ServedCall& call) noexcept { open_.push_back(call); }
  void leave(ServedCall& call) noexcept {
    if (DueList::linked(call)) due_.remove(call);
    open_.remove(call);
  }
  void let_wait(ServedCall& call) noexcept {
    due_.push_back(call);
    if (turn_ != nullptr) Process::get().ended(*turn_);
  }
  void run_due() {
    while (ServedCall* call = due_.pop_front()) call->frame.resume();
  }

 private:
  using DueList = IntrusiveList<ServedCall, &ServedCall::due_hook>;
  using OpenList = IntrusiveList<ServedCall, &ServedCall::open_hook>;

  [[nodiscard]] ServedCall* first_to_drop() const noexcept {
    ServedCall* call = open_.front();
    while (call != nullptr && call->is_in_function()) call = OpenList::next(*call);
    return call;
  }

  DueList due_;
  OpenList open_;
  Awaitable* turn_ = nullptr;
  bool closed_ = false;
};

/// What the process goes on with while calls are due.
class Server final : public Awaitable {
 public:
  PyObject* take() override { return Py_NewRef(Py_None); }
  void advance() override { Calls::get().run_due(); }
  void give_up(Status) override {}
};

std::string rank_here() { return "rank " + std::to_string(Process::get().runtime().rank().value); }

struct Turn {
  ServedCall& call;
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> frame) const noexcept {
    call.frame = frame;
    Calls::get().let_wait(call);
  }
  void await_resume() const noexcept {}
};

/// Holds the message, and with it the room in the window of who sent it, until the call is answered.
detail::TaskDriver<remote::RunningCall> serve(remote::Invocation invocation, ReadArchive arguments) {
  ServedCall call(invocation, arguments);
  co_await Turn{call};
  if (Running* running = call.begin()) {
    co_await EndOf{*running};
    call.answer(running->result());
  }
}

/// In progress, perhaps without the GIL.
void run_here(ReadArchive& arguments, const remote::Invocation& invocation) {
  if (invocation.source.value >= remote::runtime_of(*invocation.service).size())
    throw Error(Status::not_supported, "functions of Python are called by processes of the job");
  *invocation.begun = true;
  if (!Calls::get().is_closed()) return static_cast<void>(serve(invocation, arguments));
  if (invocation.is_asked()) throw Error(Status::shutting_down, "the program of that process has ended");
}

ServedCall::ServedCall(const remote::Invocation& invocation, ReadArchive arguments) noexcept
    : invocation_(invocation), arguments_(arguments) {
  Calls::get().enter(*this);
}

ServedCall::~ServedCall() { Calls::get().leave(*this); }

PyObject* ServedCall::call() {
  static const nb::handle find = python_function("brant._remote_calls", "find");
  const CallContents contents = CallContents::read(arguments_);
  const auto [all, keywords] = contents.arguments();
  name_ = all[0];
  const nb::object function = find(name_);
  const nb::object args = nb::steal(PyTuple_GetSlice(all.ptr(), 1, PyTuple_GET_SIZE(all.ptr())));
  const Process::EntryScope scope;
  in_function_ = true;
  PyObject* result = PyObject_Call(function.ptr(), args.ptr(), keywords.is_none() ? nullptr : keywords.ptr());
  in_function_ = false;
  return result;
}

Running* ServedCall::begin() noexcept {
  PyObject* result = guarded([&] { return call(); }, static_cast<PyObject*>(nullptr));
  if (result == nullptr || PyCoro_CheckExact(result) == 0) {
    answer(result);
    return nullptr;
  }
  const nb::object coroutine = nb::steal(result);
  const bool started = guarded(
      [&] {
        static const nb::handle require_loop = python_function("brant._remote_calls", "require_loop");
        if (!loop_runs()) require_loop(name_, coroutine);
        running_ = std::make_unique<Running>(coroutine, std::make_shared<unsigned>(0));
        return true;
      },
      false);
  if (!started) answer(nullptr);
  return running_.get();
}

void ServedCall::send(CallPacker& packer) const {
  const std::size_t bytes = packer.finish();
  const remote::Packing packing = remote::open_answer(invocation_, bytes);
  if (packing.message == nullptr) throw Error(Status::no_memory, "no memory for the result of a remote call");
  packer.write(packing.bytes);
  remote::send_answer(invocation_, packing);
}

void ServedCall::answer(PyObject* result) noexcept {
  // A function that forked has come back in the child, which has no part in the job: the parent answers.
  if (!Process::get().is_owner()) {
    if (result == nullptr) PyErr_Print();
    ::_exit(result == nullptr ? 1 : 0);
  }
  const bool answered = result != nullptr && guarded(
                                                 [&] {
                                                   if (invocation_.number == 0) return true;
                                                   CallPacker packer(0);
                                                   packer.add(result);
                                                   send(packer);
                                                   return true;
                                                 },
                                                 false);
  Py_XDECREF(result);
  if (!answered) tell_failure();
}

void ServedCall::tell_failure() noexcept {
  const nb::object error = nb::steal(take_exception());
  try {
    static const nb::handle describe = python_function("brant._remote_calls", "describe");
    const nb::object name = name_.is_valid() ? name_ : nb::none();
    const nb::object described = describe(name, error, invocation_.number == 0);
    if (described.is_none()) return;  // nobody waits for what the end of its loop has ended
    if (invocation_.number != 0) {
      CallPacker packer(0, CallHeader::kException);
      packer.add(described);
      return send(packer);
    }
    remote::fail_invocation(invocation_,
                            std::make_exception_ptr(Error(Status::internal, nb::cast<std::string>(described[1]))));
  } catch (const std::exception& trouble) {
    const std::string text = std::string("what it raised could not be told: ") + trouble.what();
    remote::fail_invocation(invocation_, std::make_exception_ptr(Error(Status::internal, text)));
  }
}

void ServedCall::drop() noexcept {
  if (invocation_.number != 0) {
    const Error error(Status::shutting_down, rank_here() + " ends its program before the function has ended");
    remote::fail_invocation(invocation_, std::make_exception_ptr(error));
  }
  frame.destroy();
}

/// The answer of a call. It comes in progress, perhaps without the GIL, and is kept until the process's next turn.
class CallReply final : public Reply {
 public:
  CallReply(std::string subject, int peer) noexcept : subject_(std::move(subject)), peer_(peer) {}

  void advance() override {
    if (failure_ != nullptr) return Reply::deliver(nullptr, named(failure_));
    ReadArchive answer(bytes_.get(), count_);
    Reply::deliver(&answer, nullptr);
  }

 private:
  void deliver(ReadArchive* answer, const std::exception_ptr& failure) noexcept override {
    failure_ = failure;
    try {
      if (answer != nullptr && failure == nullptr) keep(*answer);
    } catch (...) {
      failure_ = std::current_exception();
    }
    Process::get().ended(*this);
  }
  void keep(ReadArchive& answer) {
    CallHeader header;
    ReadArchive beginning = answer;
    std::memcpy(&header, beginning.take(sizeof header), sizeof header);
    count_ = sizeof header + header.description_bytes + header.content_bytes;
    const void* bytes = answer.take(count_);
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(count_);
    std::memcpy(bytes_.get(), bytes, count_);
  }
  [[nodiscard]] std::exception_ptr named(const std::exception_ptr& failure) const {
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      return std::make_exception_ptr(Failure(error.status(), subject_ + ": " + error.what(), subject_, peer_));
    } catch (...) {
      return std::current_exception();
    }
  }

  std::string subject_;
  int peer_;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t count_ = 0;
  std::exception_ptr failure_;
};

/// A call that is packed. `args`: the name of the function, then its arguments.
PackedCall pack(int rank, const nb::tuple& args, const nb::object& kwargs, const std::string& subject) {
  Runtime& runtime = Process::get().runtime();
  if (rank < 0 || rank >= runtime.size())
    throw Failure(Status::invalid_argument,
                  subject + ": there is no rank " + std::to_string(rank) + ": the job has ranks 0 to " +
                      std::to_string(runtime.size() - 1),
                  subject);
  CallPacker packer(0);
  packer.add_arguments(args, kwargs);
  const std::size_t bytes = packer.finish();
  PackedCall call(Rpc(runtime).service(), the_function, Rank{rank}, bytes, {});
  if (!call.packed()) throw Failure(Status::no_memory, subject + ": no memory for its message", subject, rank);
  packer.write(call.arguments());
  return call;
}

nb::object ask_function(int rank, const nb::tuple& args, const nb::object& kwargs, const std::string& subject) {
  PackedCall call = pack(rank, args, kwargs, subject);
  auto [result, reply] = make<CallReply>(subject, rank);
  static_cast<void>(call.ask(reply->expect(), false));  // what goes wrong is the reply
  return std::move(result);
}

void tell_function(int rank, const nb::tuple& args, const nb::object& kwargs, const std::string& subject) {
  const Status status = pack(rank, args, kwargs, subject).send();
  if (status != Status::ok) throw failure(status, subject, rank, "it was not sent");
}

}  // namespace

void begin_remote_calls(Runtime& runtime) {
  auto [object, server] = make<Server>();
  static_cast<void>(object.release());  // as long as the process
  Calls::get().begin(runtime, *server);
}

void end_remote_calls() noexcept { Calls::get().close(); }

void bind_remote_calls(nb::module_& module) {
  const nb::class_<Server, Awaitable> server(module, "Server");
  const nb::class_<CallReply, Awaitable> reply(module, "CallReply");
  module.def("ask_function", &ask_function, nb::arg("rank"), nb::arg("args"), nb::arg("kwargs").none(),
             nb::arg("subject"));
  module.def("tell_function", &tell_function, nb::arg("rank"), nb::arg("args"), nb::arg("kwargs").none(),
             nb::arg("subject"));
}

}  // namespace brant::python
