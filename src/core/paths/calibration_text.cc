#include "core/paths/calibration_text.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/read_number.h"
#include "brant/base/status.h"
#include "core/paths/collective_bands.h"

namespace brant {
namespace {

constexpr std::string_view kFirstLine = "brant-calibration 1";
constexpr std::string_view kBlanks = " \t\r";

/// Takes the first word off `rest`; empty at the end.
std::string_view take_word(std::string_view& rest) noexcept {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(word.size());
  return word;
}

std::string_view trimmed(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::size_t last = text.find_last_not_of(kBlanks);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  Calibration parse() {
    std::string_view line;
    if (!next_line(line) || line != kFirstLine)
      fail(fmt::format("it does not begin with '{}': no calibration of this brant", kFirstLine));
    while (next_line(line)) read_fact(line);
    return std::move(calibration_);
  }

 private:
  /// The next line with something on it.
  bool next_line(std::string_view& line) noexcept {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      line = trimmed(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!line.empty() && line.front() != '#') return true;
    }
    return false;
  }

  void read_fact(std::string_view line) {
    const std::string_view name = take_word(line);
    const std::string value(trimmed(line));
    if (name == "point") {
      read_point(line);
      return;
    }
    if (name == "band") {
      std::string why;
      if (!parse_band(line, why)) fail(why);
      return;
    }
    CalibratedMachine& machine = calibration_.machine;
    if (name == "gpu" && !value.empty()) {
      machine.gpus.push_back(value);
      return;
    }
    for (const auto& [known, field] : {std::pair{"brant", &machine.brant}, std::pair{"ucx", &machine.ucx},
                                       std::pair{"cuda", &machine.cuda}, std::pair{"host", &machine.host}}) {
      if (name != known || value.empty()) continue;
      *field = value;
      return;
    }
    fail(fmt::format("'{}' is no line of a calibration: brant, ucx, cuda, host or gpu with a value, point, or band",
                     shown(name)));
  }

  void read_point(std::string_view line) {
    Path path = Path::automatic;
    const std::string_view path_word = take_word(line);
    if (!path_from_name(path_word, path) || path == Path::automatic)
      fail(fmt::format("'{}' is no path: ucx, shm, staged, copy_engine or courier", shown(path_word)));
    EndPair ends;
    const std::string_view from = take_word(line);
    const std::string_view to = take_word(line);
    if (from == "mapped") {
      if (to != "host") fail(fmt::format("from mapped memory to '{}': only to host is measured", shown(to)));
      ends = kFromMapped;
    } else {
      ends = {read_end(from), read_end(to)};
    }
    CostPoint point;
    const std::string_view bytes = take_word(line);
    if (!read_number(bytes, point.bytes)) fail(fmt::format("'{}' is no number of bytes", shown(bytes)));
    const std::string_view us = take_word(line);
    if (!read_number(us, point.us) || !std::isfinite(point.us) || point.us <= 0)
      fail(fmt::format("'{}' is no time in microseconds above 0", shown(us)));
    if (!trimmed(line).empty()) fail(fmt::format("'{}' is too much: path, from, to, bytes, us", shown(trimmed(line))));
    calibration_.add(path, ends, point);
  }

  bool read_end(std::string_view word) {
    if (word != "host" && word != "device")
      fail(fmt::format("'{}' is no end of a transfer: host, device, or from mapped", shown(word)));
    return word == "device";
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Status::invalid_argument,
                fmt::format("{}:{}: {}. Measure again with `brant calibrate`, or remove the file", name_,
                            std::max<std::size_t>(number_, 1), what));
  }

  std::string_view rest_;
  const std::string_view name_;
  std::size_t number_ = 0;
  Calibration calibration_;
};

}  // namespace

std::string shown(std::string_view word) {
  constexpr std::size_t kShown = 60;
  std::string text(word.substr(0, kShown));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return word.size() > kShown ? fmt::format("{}... ({} bytes)", text, word.size()) : text;
}

std::string calibration_text(const Calibration& calibration) {
  std::string text = fmt::format("{}\n", kFirstLine);
  const CalibratedMachine& machine = calibration.machine;
  for (const auto& [name, value] : {std::pair{"brant", &machine.brant}, std::pair{"ucx", &machine.ucx},
                                    std::pair{"cuda", &machine.cuda}, std::pair{"host", &machine.host}}) {
    if (!value->empty()) text += fmt::format("{} {}\n", name, *value);
  }
  for (const std::string& gpu : machine.gpus) text += fmt::format("gpu {}\n", gpu);
  text += "# path, from, to, bytes, microseconds one way\n";
  for (int index = 0; index < kPathCount; ++index) {
    const auto path = static_cast<Path>(index);
    for (const EndPair ends : kAllEndPairs) {
      for (const CostPoint& point : calibration.points(path, ends)) {
        text += fmt::format("point {} {} {} {} {:.4g}\n", path_name(path), from_name(ends), to_name(ends), point.bytes,
                            point.us);
      }
    }
  }
  return text;
}

Calibration parse_calibration(std::string_view text, std::string_view name) { return Parser(text, name).parse(); }

}  // namespace brant
