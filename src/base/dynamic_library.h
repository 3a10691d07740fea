#pragma once

#include <optional>
#include <string>

#include "brant/base/status.h"

namespace brant {

/// A shared library that is opened while the program runs, so that nothing needs it to be built or started. It is never
/// closed: what was taken from it stays valid, and libraries such as UCX keep threads and hooks of their own.
class DynamicLibrary {
 public:
  enum class Open { load, if_mapped };

  /// `name` is a file, or what the loader searches for (LD_LIBRARY_PATH, ldconfig). `Open::if_mapped` finds only what
  /// this process has mapped already.
  explicit DynamicLibrary(const std::string& name, Open how = Open::load);

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  /// Why it could not be opened, in the loader's words with the file's name; empty if it was.
  [[nodiscard]] const std::string& why_not() const noexcept { return why_not_; }

  /// Sets `function` to the library's function `name`, for good; null and false if there is none.
  template <typename Function>
  bool find(Function& function, const char* name) const noexcept {
    function = reinterpret_cast<Function>(symbol(name));
    return function != nullptr;
  }

  /// The file that holds `symbol`, links resolved; empty if that is not known.
  static std::string file_of(const void* symbol);

 private:
  [[nodiscard]] void* symbol(const char* name) const noexcept;

  void* handle_ = nullptr;
  std::string why_not_;
};

/// Takes a library's functions one by one, and remembers the first that it lacks.
class FunctionFinder {
 public:
  explicit FunctionFinder(const DynamicLibrary& library) noexcept : library_(library) {}

  template <typename Function>
  void need(Function& function, const char* name) noexcept {
    if (!library_.find(function, name) && missing_ == nullptr) missing_ = name;
  }
  /// The name of the first function that is missing; null: all were there.
  [[nodiscard]] const char* missing() const noexcept { return missing_; }

 private:
  const DynamicLibrary& library_;
  const char* missing_ = nullptr;
};

/// What a function gave that loads a library, or the Error it threw: a second attempt would find what the first one
/// left mapped, and its words would mislead. Make it a static object.
template <typename Library>
class LoadedOnce {
 public:
  explicit LoadedOnce(Library (*load)()) {
    try {
      library_.emplace(load());
    } catch (const Error& error) {
      error_.emplace(error);
    }
  }

  /// Throws what `load` threw.
  [[nodiscard]] const Library& get() const {
    if (error_) throw Error(*error_);
    return *library_;
  }

 private:
  std::optional<Library> library_;
  std::optional<Error> error_;
};

}  // namespace brant
