#include "cli/trace/summary.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/base/status.h"

namespace brant::cli::trace {
namespace {

using Json = nlohmann::json;

/// The sums while events are read.
class Reader {
 public:
  void add(const Json& event) {
    const std::string phase = event.at("ph");
    RankSummary& rank = ranks_[event.at("pid").get<int>()];
    if (phase == "M" && event.at("name") == "dropped_events") rank.dropped = event.at("args").at("count");
    if (phase != "X") return;
    const double begin = event.at("ts");
    const double duration = event.at("dur");
    extend(event.at("pid"), begin, begin + duration);
    const std::string category = event.at("cat");
    if (category == "entry") {
      rank.entries_us += duration;
      ++rank.entries;
      EntrySummary& entry = entries_[event.at("name")];
      ++entry.count;
      entry.total_us += duration;
      entry.longest_us = std::max(entry.longest_us, duration);
    } else if (category == "idle") {
      rank.idle_us += duration;
    } else if (category == "send" || category == "transfer") {
      const Json& arguments = event.at("args");
      const std::string what = category == "send" ? "chare messages sent" : event.at("name").get<std::string>() + "s";
      PathSummary& path = paths_[{arguments.at("path").get<std::string>(), what}];
      ++path.count;
      path.bytes += arguments.at("bytes").get<std::uint64_t>();
    }
  }

  Summary finish() {
    Summary summary;
    for (auto& [number, rank] : ranks_) {
      rank.rank = number;
      rank.span_us = spans_[number].second - spans_[number].first;
      summary.ranks.push_back(rank);
    }
    for (auto& [name, entry] : entries_) {
      entry.name = name;
      summary.entries.push_back(entry);
    }
    std::sort(summary.entries.begin(), summary.entries.end(),
              [](const EntrySummary& left, const EntrySummary& right) { return left.total_us > right.total_us; });
    for (auto& [names, path] : paths_) {
      std::tie(path.path, path.what) = names;
      summary.paths.push_back(path);
    }
    return summary;
  }

 private:
  void extend(int rank, double begin, double end) {
    const auto [span, fresh] = spans_.try_emplace(rank, begin, end);
    if (fresh) return;
    span->second.first = std::min(span->second.first, begin);
    span->second.second = std::max(span->second.second, end);
  }

  std::map<int, RankSummary> ranks_;
  std::map<int, std::pair<double, double>> spans_;
  std::map<std::string, EntrySummary> entries_;
  std::map<std::pair<std::string, std::string>, PathSummary> paths_;
};

/// A run that was killed leaves the array open, perhaps in the middle of a line.
Json parse(std::string text, const std::string& file) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    const std::size_t last = text.rfind("},\n");
    if (last != std::string::npos) json = Json::parse(text.substr(0, last + 1) + "]", nullptr, false);
  }
  if (json.is_discarded()) json = Json::parse(text + "]", nullptr, false);
  if (!json.is_array()) {
    throw Error(Status::invalid_argument, fmt::format("{} is no trace: expected what BRANT_TRACE=FILE writes", file));
  }
  return json;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

Summary summarize_trace(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw Error(Status::not_found, fmt::format("{} cannot be read", file));
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const Json json = parse(text, file);
  Reader reader;
  try {
    for (const Json& event : json) reader.add(event);
  } catch (const Json::exception& error) {
    throw Error(Status::invalid_argument, fmt::format("{} is no trace of brant: {}", file, error.what()));
  }
  return reader.finish();
}

std::string to_text(const Summary& summary, std::size_t entries_max) {
  std::string text = fmt::format("{:>5} {:>12} {:>10} {:>9} {:>8}\n", "rank", "time ms", "entries", "busy", "idle");
  std::uint64_t dropped = 0;
  for (const RankSummary& rank : summary.ranks) {
    dropped += rank.dropped;
    text += fmt::format("{:>5} {:>12.3f} {:>10} {:>8.1f}% {:>7.1f}%\n", rank.rank, rank.span_us / 1e3, rank.entries,
                        percent(rank.entries_us, rank.span_us), percent(rank.idle_us, rank.span_us));
  }
  if (!summary.entries.empty()) {
    text += fmt::format("\n{:>12} {:>10} {:>10} {:>10}  {}\n", "total ms", "count", "mean us", "max us", "entry");
  }
  for (std::size_t i = 0; i < std::min(entries_max, summary.entries.size()); ++i) {
    const EntrySummary& entry = summary.entries[i];
    text += fmt::format("{:>12.3f} {:>10} {:>10.2f} {:>10.2f}  {}\n", entry.total_us / 1e3, entry.count,
                        entry.total_us / static_cast<double>(entry.count), entry.longest_us, entry.name);
  }
  if (!summary.paths.empty()) {
    text += fmt::format("\n{:>11} {:>10} {:>16}  {}\n", "path", "count", "bytes", "what");
  }
  for (const PathSummary& path : summary.paths) {
    text += fmt::format("{:>11} {:>10} {:>16}  {}\n", path.path == "auto" ? "local" : path.path, path.count, path.bytes,
                        path.what);
  }
  if (dropped != 0) {
    text += fmt::format("\n{} older events were not kept: set BRANT_TRACE_EVENTS higher\n", dropped);
  }
  return text;
}

}  // namespace brant::cli::trace
