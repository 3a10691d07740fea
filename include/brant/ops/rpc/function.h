#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "brant/base/api.h"
#include "brant/base/archive.h"
#include "brant/base/ids.h"
#include "brant/base/status.h"
#include "brant/base/type_names.h"
#include "brant/core/reply.h"
#include "brant/core/task_driver.h"
#include "brant/ops/lane/parameters.h"

/// The functions that other processes may call. Every function that a program names in a call is enrolled by a static
/// before `main`, or when its library is opened, under a hash of its name and signature.
namespace brant {

class Runtime;
class PackedCall;

/// For a function that wants to know it, as its first parameter: who asked, and where it runs.
struct Caller {
  Rank rank;         ///< Whose call this is; of this process, if it called itself.
  Runtime& runtime;  ///< Of the process in which the function runs.
};

namespace remote {

class RpcService;
struct Function;

/// One call at work in this process, and what is needed to answer it. Copied into coroutines.
struct Invocation {
  RpcService* service = nullptr;
  const Function* function = nullptr;
  void* message = nullptr;   ///< Holds the arguments that are read in place.
  Rank source;               ///< Who called.
  std::uint32_t number = 0;  ///< Under which the caller waits; 0: it does not.
  bool* begun = nullptr;     ///< Set once the arguments were read: until then an exception blames the message.
  bool* retained = nullptr;  ///< Set by a coroutine that goes on: it gives the message back.

  [[nodiscard]] bool is_asked() const noexcept { return number != 0; }
};

/// One function that can be called.
struct Function {
  std::string_view name;
  std::string_view signature;
  const std::type_info* tag = nullptr;  ///< Tells lambdas of one place apart.
  void (*run)(ReadArchive& arguments, const Invocation& invocation) = nullptr;
  std::uint8_t data = 0;   ///< How many of its arguments travel beside the message.
  std::uint64_t hash = 0;  ///< Of all the above; set by `enroll`.
  Function* following = nullptr;
};

/// From any thread.
BRANT_API bool enroll(Function& function) noexcept;

/// A message being packed: `bytes` has room for as much as was asked for. Null without memory.
struct Packing {
  void* message = nullptr;
  std::byte* bytes = nullptr;
};
BRANT_API Packing open_answer(const Invocation& invocation, std::size_t bytes) noexcept;
BRANT_API void drop_answer(const Invocation& invocation, const Packing& packing) noexcept;
BRANT_API void send_answer(const Invocation& invocation, const Packing& packing) noexcept;
/// Tells the caller that its call has failed; if nobody waits, the program ends as by an uncaught exception.
BRANT_API void fail_invocation(const Invocation& invocation, const std::exception_ptr& error) noexcept;
/// Where data argument `index` landed. `block`, unless it is null, gets the memory of the runtime, for the caller to
/// drop.
BRANT_API Buffer landed_data(const Invocation& invocation, std::size_t index, lane::LandingBlock** block) noexcept;
BRANT_API Runtime& runtime_of(RpcService& service) noexcept;

template <typename... Result>
void answer(const Invocation& invocation, const Result&... result) {
  SizeArchive size;
  size(result...);
  const Packing packing = open_answer(invocation, size.size());
  if (packing.message == nullptr) throw Error(Status::no_memory, "no memory for the result of a remote call");
  try {
    WriteArchive write(packing.bytes);
    write(result...);
  } catch (...) {
    drop_answer(invocation, packing);
    throw;
  }
  send_answer(invocation, packing);
}

/// A function that is a coroutine and has not ended: it keeps its message, and ends with the service.
struct BRANT_API RunningCall {
  RunningCall(const Invocation& of, std::coroutine_handle<> in) noexcept;
  ~RunningCall();
  RunningCall(const RunningCall&) = delete;
  RunningCall& operator=(const RunningCall&) = delete;

  Invocation invocation;
  std::coroutine_handle<> frame;
  RunningCall* next = nullptr;
  RunningCall* previous = nullptr;
};

/// A parameter that needs to know where it arrives (DistributedRef).
template <typename T>
concept Arrives =
    requires(T& value, ReadArchive& archive, const Invocation& invocation) { value.arrive(archive, invocation); };

template <typename T>
void read_argument(ReadArchive& archive, T& value, const Invocation& invocation) {
  if constexpr (Arrives<T>) {
    value.arrive(archive, invocation);
  } else if constexpr (!detail::DataParameter<T>::is_data) {
    archive(value);
  }
}
template <typename T>
void land_argument(T& value, const Invocation& invocation, std::size_t& data_index) noexcept {
  if constexpr (detail::DataParameter<T>::is_data) value.land(invocation, data_index++);
}

template <typename T>
inline constexpr bool kIsView = detail::kIsSpan<T> || std::is_same_v<T, std::string_view>;

template <bool Asks, typename R, typename... Ps>
struct CallShapeOf : detail::ParameterShape<R, Ps...> {
  using typename detail::ParameterShape<R, Ps...>::Arguments;
  static_assert(detail::ParameterShape<R, Ps...>::kData <= detail::kDataMax,
                "brant: a remote function has at most 8 parameters DeviceData and HostData");
  template <typename F>
  static R call(const F& function, const Invocation& invocation, Arguments& arguments) {
    return std::apply(
        [&](auto&... values) -> R {
          if constexpr (Asks) {
            return function(Caller{invocation.source, runtime_of(*invocation.service)}, static_cast<Ps&&>(values)...);
          } else {
            return function(static_cast<Ps&&>(values)...);
          }
        },
        arguments);
  }
};

template <typename Signature>
struct CallShape;
template <typename R, typename... Ps>
struct CallShape<R(Ps...)> : CallShapeOf<false, R, Ps...> {};
template <typename R, typename... Ps>
struct CallShape<R(Caller, Ps...)> : CallShapeOf<true, R, Ps...> {};
template <typename R, typename... Ps>
struct CallShape<R(const Caller&, Ps...)> : CallShapeOf<true, R, Ps...> {};

/// `R(Args...)` of a function pointer or of a lambda without captures and without `auto` parameters.
template <typename F>
struct SignatureOf {
  static constexpr bool kKnown = false;
};
template <typename R, typename... Ps>
struct SignatureOf<R (*)(Ps...)> {
  static constexpr bool kKnown = true;
  using type = R(Ps...);
};
template <typename R, typename... Ps>
struct SignatureOf<R (*)(Ps...) noexcept> : SignatureOf<R (*)(Ps...)> {};
template <typename L, typename R, typename... Ps>
struct SignatureOf<R (L::*)(Ps...) const> : SignatureOf<R (*)(Ps...)> {};
template <typename L, typename R, typename... Ps>
struct SignatureOf<R (L::*)(Ps...) const noexcept> : SignatureOf<R (*)(Ps...)> {};
template <typename L>
  requires requires { &L::operator(); }
struct SignatureOf<L> : SignatureOf<decltype(&L::operator())> {};

/// Has the function's name in its own.
template <auto F>
struct FunctionTag {};

/// One function, as it is enrolled and as it is called.
template <auto F>
struct FunctionOf {
  using Known = SignatureOf<std::remove_const_t<decltype(F)>>;
  static_assert(Known::kKnown,
                "brant: name a function, or a lambda without captures and without 'auto' parameters: "
                "rpc.call<&scale>(rank, 2.0). An overloaded function needs a cast to the one that is meant");
  using Signature = typename Known::type;
  using Shape = CallShape<Signature>;
  using Reply = typename Shape::Reply;
  static_assert(Shape::kNoMutableReference,
                "brant: a remote function takes its arguments by value or const reference: nothing travels back; "
                "return the result instead");
  static_assert(Shape::kNoPointer,
                "brant: a remote function takes no pointers: they mean nothing in another process. Use std::span<const "
                "T>, std::vector or std::string");
  static_assert(!detail::kIsTask<typename Shape::Result> || Shape::kByValue,
                "brant: a remote function that is a coroutine takes its arguments by value: references would dangle "
                "when it waits (std::span<const T> is fine)");
  static_assert(!kIsView<Reply>,
                "brant: a remote function returns no view: nothing would hold what it looks at. Return std::vector or "
                "std::string");

  /// Its arguments and its result can go by message. False: the compiler has said why.
  static constexpr bool kTravels =
      Shape::kNoMutableReference && Shape::kNoPointer && !kIsView<Reply> && Shape::require_travels();

  /// False: the compiler has said why.
  template <typename... As>
  static constexpr bool require_fitting() noexcept {
    static_assert(Shape::template kTakes<As...>,
                  "brant: the arguments do not fit the remote function: their number differs, or one cannot be "
                  "converted");
    return kTravels && Shape::template kTakes<As...>;
  }

  static void run(ReadArchive& archive, const Invocation& invocation) {
    if constexpr (kTravels) {
      typename Shape::Arguments arguments{};
      [[maybe_unused]] std::size_t data_index = 0;
      std::apply([&](auto&... values) { (read_argument(archive, values, invocation), ...); }, arguments);
      // Data is taken over last, since a call that is kept back while its arguments are read needs it once more.
      std::apply([&](auto&... values) { (land_argument(values, invocation, data_index), ...); }, arguments);
      *invocation.begun = true;
      if constexpr (detail::kIsTask<typename Shape::Result>) {
        detail::drive<RunningCall>(invocation, Shape::call(F, invocation, arguments));
      } else if constexpr (std::is_void_v<Reply>) {
        Shape::call(F, invocation, arguments);
        if (invocation.is_asked()) answer(invocation);
      } else if (invocation.is_asked()) {
        answer(invocation, Shape::call(F, invocation, arguments));
      } else {
        static_cast<void>(Shape::call(F, invocation, arguments));
      }
    }
  }

  /// As it is said to people: of a lambda, where it stands.
  static constexpr std::string_view name() noexcept {
    constexpr std::string_view kClosure = "<lambda closure object>";
    const std::string_view whole = detail::value_name<F>();
    return whole.starts_with(kClosure) ? whole.substr(kClosure.size()) : whole;
  }
  static inline constinit Function function{name(), detail::type_name<Signature>(), &typeid(FunctionTag<F>), &run,
                                            static_cast<std::uint8_t>(Shape::kData)};
  static inline const bool kEnrolled = enroll(function);
  static const Function& get() noexcept {
    [[maybe_unused]] const bool* keep = &kEnrolled;  // the address is what makes the compiler run `enroll`
    return function;
  }
};

}  // namespace remote
}  // namespace brant
