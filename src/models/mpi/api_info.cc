#include <cstring>
#include <memory>

#include "models/mpi/calls.h"
#include "models/mpi/memory_alloc_kinds.h"
#include "mpi_generated/api.h"

namespace brant::mpi::api {

namespace {

/// MPI_INFO_ENV says how the program was started, as far as that is known, and which memory calls take.
Info& readable(MPI_Info handle) {
  if (handle != MPI_INFO_ENV) return info_of(handle);
  static Info environment;
  if (const std::string kinds = memory_alloc_kinds(); !kinds.empty()) environment.set(kMemoryAllocKinds, kinds);
  return environment;
}

std::string_view key_of(const char* key) {
  require(key != nullptr && *key != 0, MPI_ERR_INFO_KEY, "the key is empty");
  const std::string_view text(key);
  require(text.size() < MPI_MAX_INFO_KEY, MPI_ERR_INFO_KEY, "the key has {} characters; {} is the most", text.size(),
          MPI_MAX_INFO_KEY - 1);
  return text;
}

}  // namespace

int info_create(MPI_Info* info) noexcept {
  return call_at_any_time("MPI_Info_create", [&] {
    require_place(static_cast<const void*>(info), "info");
    *info = handle_of<MPI_Info>(*std::make_unique<Info>().release());
  });
}

int info_create_env(int, char*[], MPI_Info* info) noexcept { return info_create(info); }

int info_dup(MPI_Info info, MPI_Info* newinfo) noexcept {
  return call_at_any_time("MPI_Info_dup", [&] { *newinfo = publish_copy(readable(info)); });
}

int info_free(MPI_Info* info) noexcept {
  return call_at_any_time("MPI_Info_free", [&] {
    require_place(static_cast<const void*>(info), "info");
    delete &info_of(*info);
    *info = MPI_INFO_NULL;
  });
}

int info_set(MPI_Info info, const char* key, const char* value) noexcept {
  return call_at_any_time("MPI_Info_set", [&] {
    Info& owner = info_of(info);
    const std::string_view name = key_of(key);
    require(value != nullptr && std::strlen(value) < MPI_MAX_INFO_VAL, MPI_ERR_INFO_VALUE,
            "the value of {} is null, or longer than {} characters", name, MPI_MAX_INFO_VAL - 1);
    owner.set(name, value);
  });
}

int info_delete(MPI_Info info, const char* key) noexcept {
  return call_at_any_time("MPI_Info_delete", [&] {
    Info& owner = info_of(info);
    const std::string_view name = key_of(key);
    const auto gone = std::erase_if(owner.entries, [name](const Info::Entry& entry) { return entry.first == name; });
    require(gone != 0, MPI_ERR_INFO_NOKEY, "the info object has no key {}", name);
  });
}

int info_get_nkeys(MPI_Info info, int* nkeys) noexcept {
  return call_at_any_time("MPI_Info_get_nkeys", [&] { *nkeys = static_cast<int>(readable(info).entries.size()); });
}

int info_get_nthkey(MPI_Info info, int n, char* key) noexcept {
  return call_at_any_time("MPI_Info_get_nthkey", [&] {
    const Info& owner = readable(info);
    require(n >= 0 && static_cast<std::size_t>(n) < owner.entries.size(), MPI_ERR_ARG,
            "the info object has {} keys, and no {}th counted from 0", owner.entries.size(), n);
    store_text(owner.entries[static_cast<std::size_t>(n)].first, key, MPI_MAX_INFO_KEY, nullptr);
  });
}

int info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag) noexcept {
  return call_at_any_time("MPI_Info_get_string", [&] {
    const Info::Entry* entry = readable(info).find(key_of(key));
    *flag = entry != nullptr ? 1 : 0;
    if (entry == nullptr) return;
    if (*buflen > 0) store_text(entry->second, value, *buflen, nullptr);
    *buflen = static_cast<int>(entry->second.size()) + 1;
  });
}

int info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag) noexcept {
  return call_at_any_time("MPI_Info_get", [&] {
    const Info::Entry* entry = readable(info).find(key_of(key));
    *flag = entry != nullptr ? 1 : 0;
    if (entry != nullptr) store_text(entry->second, value, valuelen + 1, nullptr);
  });
}

int info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag) noexcept {
  return call_at_any_time("MPI_Info_get_valuelen", [&] {
    const Info::Entry* entry = readable(info).find(key_of(key));
    *flag = entry != nullptr ? 1 : 0;
    if (entry != nullptr) *valuelen = static_cast<int>(entry->second.size());
  });
}

}  // namespace brant::mpi::api
