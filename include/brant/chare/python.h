#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "brant/base/api.h"
#include "brant/chare/array.h"
#include "brant/chare/detail/signature.h"
#include "brant/chare/placement.h"

namespace brant {

namespace detail {

/// The entry of chares of Python that C++ calls. Throws not_found in a process without the package for Python.
BRANT_API const EntryInfo& python_entry(bool with_data);
/// The class that stands for those of Python in arrays of so many dimensions, and its constructor for C++. As above.
BRANT_API const ClassInfo& python_class(int dimensions);
BRANT_API const ConstructorInfo& python_constructor();
BRANT_API [[noreturn]] void throw_no_python_element(const std::string& class_name, const ElementKey& index,
                                                    int dimensions, const ElementKey& extent, int extent_dimensions);

/// As which parameter an argument travels.
template <typename A>
struct PythonForm {
  using type = A;
};
template <>
struct PythonForm<const char*> {
  using type = std::string_view;
};
template <>
struct PythonForm<char*> {
  using type = std::string_view;
};
template <typename T, std::size_t N>
struct PythonForm<std::span<T, N>> {
  using type = std::span<const T>;
};
template <>
struct PythonForm<DeviceArgument> {
  using type = DeviceData;
};
template <typename T>
struct PythonForm<HostArgument<T>> {
  using type = HostData<T>;
};

/// Packs and posts a call of a method of Python: its name, the signatures, the arguments. `open(entry, bytes)`.
template <typename... Ps>
struct PythonCall {
  static constexpr std::size_t kData = (std::size_t{0} + ... + (DataParameter<Ps>::is_data ? 1 : 0));
  static_assert(kData <= kDataMax, "brant: a call has at most 8 arguments device() and no_copy()");

  template <typename P>
  using Given = std::conditional_t<DataParameter<P>::is_data, typename DataParameter<P>::Sent,
                                   const typename DataParameter<P>::Sent&>;

  template <typename Open>
  static void post(Core& core, Open&& open, std::string_view method, std::string_view answer, Given<Ps>... values) {
    const EntryInfo& entry = python_entry(kData != 0);
    const auto open_entry = [&](std::size_t bytes) { return open(entry, bytes); };
    const std::string_view signature = signature_of<Ps...>();
    if constexpr (kData == 0) {
      Outgoing outgoing = pack(open_entry, method, signature, answer, values...);
      detail::post(core, outgoing);
    } else {
      using Texts = std::string_view;
      PostWithData<std::tuple<Texts, Texts, Texts, Ps...>,
                   std::tuple<Texts, Texts, Texts, typename DataParameter<Ps>::Sent...>>::post(core, entry, open_entry,
                                                                                               method, signature,
                                                                                               answer,
                                                                                               std::move(values)...);
    }
  }
};

/// What proxies of Python's chares have in common. A value.
class PythonProxy : private NotBytes {
 public:
  [[nodiscard]] std::uint32_t collection() const noexcept { return collection_; }
  /// "package.module:Class".
  [[nodiscard]] const std::string& class_name() const noexcept { return class_name_; }
  [[nodiscard]] int dimensions() const noexcept { return dimensions_; }

  bool operator==(const PythonProxy& other) const noexcept {
    return collection_ == other.collection_ && key_ == other.key_;
  }

  void serialize(auto& archive) {
    archive(collection_, dimensions_, extent_, key_, class_name_);
    if constexpr (std::remove_reference_t<decltype(archive)>::reading) core_ = &archive.chares()->core();
  }

 protected:
  PythonProxy() = default;
  PythonProxy(Core& core, std::uint32_t collection, int dimensions, const ElementKey& extent, std::string class_name)
      : core_(&core),
        collection_(collection),
        dimensions_(dimensions),
        extent_(extent),
        class_name_(std::move(class_name)) {}

  [[nodiscard]] Core& require_core() const {
    if (core_ == nullptr)
      throw Error(Status::invalid_argument, "a proxy of Python that was never assigned: it comes as an argument");
    return *core_;
  }

  Core* core_ = nullptr;
  std::uint32_t collection_ = 0;
  std::int32_t dimensions_ = 1;
  ElementKey extent_;
  ElementKey key_;  ///< Of an element.
  std::string class_name_;
  CallOptions options_;
};

}  // namespace detail

/// One chare of a class of Python, wherever it lives. A value: copy it, keep it, send it as an argument.
///
///     watcher.call("note", step, std::span<const double>(residuals));       // a method with @brant.entry
///     double mean = co_await watcher.ask<double>("mean", "of what");        // its result, as a double
///
/// Arguments are numbers, text, containers of these, `device(...)`, `no_copy(...)` and proxies
/// (`detail/signature.h`). Runs of numbers arrive as arrays of NumPy, `device(...)` as an array of bytes. They are
/// packed inside the call. The method gets them as positional ones; if it does not take them, that is an error of the
/// method.
class PythonElement : public detail::PythonProxy {
 public:
  PythonElement() = default;

  /// The same element with other options for the next call.
  [[nodiscard]] PythonElement with(const CallOptions& options) const {
    PythonElement other = *this;
    other.options_ = options;
    return other;
  }

  /// Calls a method. Throws as `Element::call`; an exception of the method ends the job with its text.
  template <typename... As>
  void call(std::string_view method, As&&... arguments) const {
    send(0, method, {}, std::forward<As>(arguments)...);
  }

  /// Calls a method and gives the future of its result, which must be what R is: an R of 4 bytes takes no larger
  /// number. The future throws what the method raised, as Error with the traceback in its text.
  template <typename R = void, typename... As>
  Future<R> ask(std::string_view method, As&&... arguments) const {
    Promise<R> promise;
    Future<R> future = promise.future();
    const std::uint32_t reply = detail::expect_reply(require_core(), detail::waiting_for(std::move(promise)),
                                                     {collection_, key_}, detail::python_entry(false));
    send(reply, method, detail::signature_of<R>(), std::forward<As>(arguments)...);
    return future;
  }

 private:
  friend class PythonArray;

  template <typename... As>
  void send(std::uint32_t reply, std::string_view method, std::string_view answer, As&&... arguments) const {
    detail::Core& core = require_core();
    const auto open = [&](const detail::EntryInfo& entry, std::size_t bytes) {
      return detail::open_call(core, {collection_, key_}, entry, options_, reply, bytes);
    };
    detail::PythonCall<typename detail::PythonForm<std::decay_t<As>>::type...>::post(core, open, method, answer,
                                                                                     std::forward<As>(arguments)...);
  }
};

/// All elements of an array, or a group, of a class of Python: handed over by Python as an argument, or made by
/// `create_python_array`.
class PythonArray : public detail::PythonProxy {
 public:
  PythonArray() = default;
  /// For `create_python_array`.
  PythonArray(detail::Core& core, std::uint32_t collection, int dimensions, const detail::ElementKey& extent,
              std::string class_name)
      : PythonProxy(core, collection, dimensions, extent, std::move(class_name)) {}

  /// Of the dense array; 0 beyond its dimensions.
  [[nodiscard]] std::int32_t extent(int dimension) const noexcept { return extent_.coordinate(dimension); }

  /// An element. Throws invalid_argument outside the array, or for an index of other dimensions.
  template <int N>
  PythonElement operator[](const Index<N>& index) const {
    bool inside = N == dimensions_;
    for (int i = 0; inside && i < N; ++i) inside = index[i] >= 0 && index[i] < extent_.coordinate(i);
    const auto key = detail::ElementKey::of(index);
    if (!inside) detail::throw_no_python_element(class_name_, key, N, extent_, dimensions_);
    PythonElement element;
    static_cast<detail::PythonProxy&>(element) = *this;
    element.key_ = key;
    return element;
  }
  PythonElement operator[](int index) const { return (*this)[Index<1>(index)]; }

  [[nodiscard]] PythonArray with(const CallOptions& options) const {
    PythonArray other = *this;
    other.options_ = options;
    return other;
  }

  /// Calls a method of every element, by a tree over the ranks.
  template <typename... As>
  void call(std::string_view method, As&&... arguments) const {
    detail::Core& core = require_core();
    const auto open = [&](const detail::EntryInfo& entry, std::size_t bytes) {
      return detail::open_broadcast(core, collection_, entry, options_, bytes);
    };
    detail::PythonCall<typename detail::PythonForm<std::decay_t<As>>::type...>::post(
        core, open, method, std::string_view(), std::forward<As>(arguments)...);
  }
};

/// Makes an array of chares of Python: an element for every index below `extent`. `class_name` is
/// "package.module:Class", as Python imports it in every process; "__main__:Class" for one of the program itself. The
/// arguments are those of
/// `__init__`, by place, as in a call; the placement stands before them. Called once, on any rank; returns at once.
/// Throws as `create_array`, and not_found in a process without the package for Python. What the constructor or the
/// import raises ends the job with its text.
template <int N, typename... As>
PythonArray create_python_array(Chares& chares, const std::string& class_name, const Index<N>& extent,
                                const Placement& placement = Placement::block(), const As&... arguments) {
  static_assert((!detail::DataParameter<typename detail::PythonForm<std::decay_t<As>>::type>::is_data && ...),
                "brant: a constructor takes no arguments device() and no_copy()");
  detail::Core& core = chares.core();
  const auto key = detail::ElementKey::of(extent);
  const detail::CollectionShape shape{.chare_class = &detail::python_class(N),
                                      .constructor = &detail::python_constructor(),
                                      .placement = &placement,
                                      .extent = key,
                                      .dense = true};
  std::uint32_t collection = 0;
  const auto open = [&](std::size_t bytes) { return detail::open_create(core, shape, bytes, collection); };
  using Parameters = std::tuple<std::string, std::int32_t, detail::ElementKey, std::string_view,
                                typename detail::PythonForm<std::decay_t<As>>::type...>;
  detail::Outgoing outgoing = detail::PackAs<Parameters>::pack(
      open, class_name, N, key, detail::signature_of<typename detail::PythonForm<std::decay_t<As>>::type...>(),
      arguments...);
  detail::post(core, outgoing);
  return PythonArray(core, collection, N, key, class_name);
}

}  // namespace brant
