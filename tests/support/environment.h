#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace brant::test {

/// An environment variable as a test wants it, for the length of a scope; afterwards it is as it was. For tests of one
/// thread: the environment has no lock.
class ScopedVariable {
 public:
  /// `value` null: not set at all.
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) { value != nullptr ? ::setenv(name_, value, 1) : ::unsetenv(name_); }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace brant::test
