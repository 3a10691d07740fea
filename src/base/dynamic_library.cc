#include "base/dynamic_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace brant {

DynamicLibrary::DynamicLibrary(const std::string& name, Open how) {
  const int only_mapped = how == Open::if_mapped ? RTLD_NOLOAD : 0;
  ::dlerror();
  handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | only_mapped);
  if (handle_ != nullptr) return;
  const char* why = ::dlerror();
  why_not_ = why != nullptr ? why : name + ": not loaded";
}

void* DynamicLibrary::symbol(const char* name) const noexcept {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

std::string DynamicLibrary::file_of(const void* symbol) {
  Dl_info info{};
  if (symbol == nullptr || ::dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string(info.dli_fname) : whole.string();
}

}  // namespace brant
