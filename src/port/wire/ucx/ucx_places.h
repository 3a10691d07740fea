#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace brant::port::ucx {

/// A libucp.so.0 that may be taken, or why it may not.
struct UcxPlace {
  std::string path;
  std::string refused;  ///< Why it is passed over; empty if it may be loaded.
};

/// Where UCX may lie when nobody has said where, in the order to try: beside the object that contains this code, then
/// the wheel of the active Python (VIRTUAL_ENV, else the python of PATH). Only places that exist, and those beside the
/// object in any case. The system's own, which the loader finds by its rules, comes after them. Loads nothing.
std::vector<UcxPlace> ucx_places();

/// Why code must not be loaded from this file, or an empty text. Every folder of its path, and the file, must belong to
/// root, to this process's user or to `owner`, and nobody else may write to it: others not at all, a group only if it
/// is the user's own (same number, as distributions set it up). Folders further up may be sticky like /tmp.
std::string why_unsafe(const std::filesystem::path& file, unsigned owner);

}  // namespace brant::port::ucx
