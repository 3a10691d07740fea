#include "core/paths/calibration_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "base/env.h"
#include "base/host_name.h"
#include "base/unique_fd.h"
#include "brant/base/status.h"
#include "core/paths/calibration_text.h"

namespace brant {
namespace {

constexpr const char* kCure = "run `brant calibrate` again";
constexpr std::size_t kBytesMax = std::size_t{1} << 20;  // what `brant calibrate` writes has some kilobytes

/// The reason of a failed call, or what is known without one.
std::string system_reason(int error) { return error != 0 ? std::strerror(error) : "no reason given"; }

std::string unreadable(const std::string& file, const std::string& reason) {
  return fmt::format("{} cannot be read: {}. Give BRANT_CALIBRATION a file of `brant calibrate`, or off", file, reason);
}

[[noreturn]] void fail_read(const std::string& file, const std::string& reason) {
  throw Error(Status::io_error, unreadable(file, reason));
}

[[noreturn]] void fail_write(const std::string& file, const std::string& reason) {
  throw Error(Status::io_error, fmt::format("{} cannot be written: {}. Choose another place with --output or "
                                            "XDG_CACHE_HOME",
                                            file, reason));
}

}  // namespace

std::optional<std::string> read_small_file(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // or it waits for who writes to a pipe
  if (!fd && errno == ENOENT) return std::nullopt;
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0) fail_read(file, system_reason(errno));
  if (S_ISDIR(facts.st_mode)) fail_read(file, "it is a folder");
  if (!S_ISREG(facts.st_mode)) fail_read(file, "it is no regular file, but a pipe, a socket or a device");
  std::string text(kBytesMax + 1, '\0');  // its size may be told wrong, or change
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + bytes, text.size() - bytes);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_read(file, system_reason(errno));
    bytes += static_cast<std::size_t>(got);
  }
  if (bytes > kBytesMax) fail_read(file, fmt::format("it is longer than {} bytes, so no calibration", kBytesMax));
  text.resize(bytes);
  return text;
}

std::string calibration_file() {
  std::filesystem::path folder(env("XDG_CACHE_HOME"));
  // The convention of these variables: a relative one is to be ignored.
  if (!folder.is_absolute()) folder = env("HOME").empty() ? "" : std::filesystem::path(env("HOME")) / ".cache";
  if (folder.empty()) return {};
  return folder / "brant" / (host_name() + ".calibration");
}

std::string model_file() {
  const std::string beside = calibration_file();
  return beside.empty() ? beside : std::filesystem::path(beside).replace_extension(".model.json").string();
}

void write_calibration(const Calibration& calibration, const std::string& file) {
  write_small_file(calibration_text(calibration), file);
}

void write_small_file(const std::string& text, const std::string& file) {
  const std::filesystem::path target(file);
  std::error_code fault;
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), fault);
  if (fault) fail_write(file, fault.message());
  const std::string draft = fmt::format("{}.{}", file, ::getpid());
  errno = 0;
  std::ofstream stream(draft, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) {
    const std::string reason = system_reason(errno);
    std::filesystem::remove(draft, fault);
    fail_write(file, reason);
  }
  std::filesystem::rename(draft, target, fault);
  if (!fault) return;
  const std::string reason = fault.message();
  std::filesystem::remove(draft, fault);
  fail_write(file, reason);
}

std::string ucx_version_of(std::string_view network) {
  constexpr std::string_view kName = "UCX ";
  if (network.substr(0, kName.size()) != kName) return {};
  network.remove_prefix(kName.size());
  return std::string(network.substr(0, network.find(" (")));
}

std::string gpu_name_of(const port::DeviceCapabilities& device) {
  if (device.offers(MemoryKind::cuda)) return device.id;
  // Its own id is another in each process.
  return device.offers(MemoryKind::emulated) ? "emulated" : "";
}

std::string_view brant_release() noexcept { return BRANT_VERSION; }

CalibratedMachine machine_of(const port::Adapters& adapters) {
  const port::DeviceCapabilities& device = adapters.device->capabilities();
  CalibratedMachine machine;
  machine.brant = brant_release();
  machine.ucx = ucx_version_of(adapters.wire->capabilities().version);
  if (device.offers(MemoryKind::cuda)) machine.cuda = device.driver;
  machine.host = host_name();
  if (std::string gpu = gpu_name_of(device); !gpu.empty()) machine.gpus.push_back(std::move(gpu));
  return machine;
}

std::string why_unfit(const CalibratedMachine& measured, const CalibratedMachine& here) {
  const auto differs = [](const std::string& then, const std::string& now) {
    return !then.empty() && !now.empty() && then != now;
  };
  if (differs(measured.brant, here.brant))
    return fmt::format("it was measured with brant {}, this is {}", shown(measured.brant), here.brant);
  if (differs(measured.ucx, here.ucx))
    return fmt::format("it was measured with UCX {}, this is {}", shown(measured.ucx), here.ucx);
  if (differs(measured.cuda, here.cuda))
    return fmt::format("it was measured with {}, this is {}", shown(measured.cuda), here.cuda);
  if (measured.gpus.empty()) return {};
  for (const std::string& gpu : here.gpus) {
    if (std::find(measured.gpus.begin(), measured.gpus.end(), gpu) == measured.gpus.end())
      return fmt::format("it was measured without this device ({})", gpu);
  }
  return {};
}

CalibrationInUse find_calibration(const std::string& wanted, const CalibratedMachine& here) {
  CalibrationInUse found;
  const bool by_default = wanted == "auto";
  found.file = by_default ? calibration_file() : wanted == "off" ? "" : wanted;
  if (found.file.empty()) return found;
  try {
    const std::optional<std::string> text = read_small_file(found.file);
    if (!text) {
      if (by_default) {
        found.file.clear();
      } else {
        found.refused = unreadable(found.file, system_reason(ENOENT));
      }
      return found;
    }
    Calibration calibration = parse_calibration(*text, found.file);
    if (calibration.empty()) {
      found.refused = fmt::format("{} is not used: it holds no figure (a line 'point ...'); {}", found.file, kCure);
      return found;
    }
    if (const std::string unfit = why_unfit(calibration.machine, here); !unfit.empty()) {
      found.refused = fmt::format("{} is not used: {}; {}", found.file, unfit, kCure);
      return found;
    }
    found.calibration = std::move(calibration);
    found.measured = true;
  } catch (const Error& fault) {
    found.refused = fault.what();
  }
  return found;
}

}  // namespace brant
