#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/paths/calibration.h"
#include "port/adapters.h"

namespace brant {

/// The file that `brant calibrate` writes and every start reads: one per host name, in $XDG_CACHE_HOME/brant or
/// ~/.cache/brant. Empty if this user has neither.
std::string calibration_file();

/// Replaces the file in one step, with the folders before it. Throws Error io_error naming the file and the reason.
void write_calibration(const Calibration& calibration, const std::string& file);

/// Where `brant calibrate --model` keeps the parameters of models: beside that file, likewise.
std::string model_file();
/// What a file of this kind holds; nothing if it does not exist. Throws io_error naming the file and the reason: it
/// cannot be read, is a folder, a pipe or a device, where reading may never end, or is larger than a calibration.
std::optional<std::string> read_small_file(const std::string& file);
/// As write_calibration, any text.
void write_small_file(const std::string& text, const std::string& file);

/// What a process knows of the machine it runs on; its `gpus` is its own one, or none.
CalibratedMachine machine_of(const port::Adapters& adapters);
/// "1.22.0" of "UCX 1.22.0 (/path)"; other networks stay as they are.
std::string ucx_version_of(std::string_view network);
/// As a calibration names a device: the UUID of a GPU, "emulated", empty for none.
std::string gpu_name_of(const port::DeviceCapabilities& device);
/// Of this build: "0.1.0".
std::string_view brant_release() noexcept;

/// Why numbers of `measured` do not hold on `here`; empty if they do.
std::string why_unfit(const CalibratedMachine& measured, const CalibratedMachine& here);

/// The numbers that a process goes by.
struct CalibrationInUse {
  Calibration calibration = Calibration::defaults();
  bool measured = false;  ///< Of this machine; else the built-in ones.
  std::string file;       ///< That they come from, or that was looked at; empty for none.
  std::string refused;    ///< Why the file is not used, with the cure; empty if it is, or if there is none.
};

/// `wanted`: a file; "auto": the one in the cache folder, if there is one; empty or "off": none. Never throws for what
/// is wrong with a file: `refused` says it.
CalibrationInUse find_calibration(const std::string& wanted, const CalibratedMachine& here);

}  // namespace brant
