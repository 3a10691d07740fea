#include "cli/info/gpu_matrix.h"

#include <algorithm>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "cli/info/report.h"

namespace brant::cli::info {
namespace {

using port::memory::GpuLink;
using port::memory::GpuTopology;
using port::memory::PcieWay;

GpuTopology topology_of(int gpus, const std::function<void(GpuLink&)>& describe) {
  GpuTopology topology;
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      if (from == to) continue;
      GpuLink& link = topology.links.emplace_back();
      link.from = from;
      link.to = to;
      link.access = true;
      link.atomics = true;
      describe(link);
    }
  }
  return topology;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(GpuMatrix, is_empty_with_one_gpu_or_none) {
  EXPECT_EQ(gpu_matrix({}), "");
  EXPECT_EQ(gpu_matrix(topology_of(1, [](GpuLink&) {})), "");
  EXPECT_EQ(gpu_links_json({}).dump(), "[]");
}

TEST(GpuMatrix, of_eight_gpus_fits_a_terminal_and_lines_up) {
  const GpuTopology topology = topology_of(8, [](GpuLink& link) {
    link.nvlinks = 18;
    link.through_switch = true;
  });
  const std::vector<std::string> lines = lines_of(gpu_matrix(topology));
  ASSERT_GE(lines.size(), 10u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 107u) << line;
  for (std::size_t row = 1; row <= 8; ++row) {
    EXPECT_EQ(lines[row].substr(0, 5), "GPU " + std::to_string(row - 1));
    const std::size_t self = lines[0].find(std::to_string(row - 1));
    EXPECT_EQ(lines[row][self], 'X') << lines[row];
  }
  EXPECT_EQ(std::count(lines[3].begin(), lines[3].end(), 'V'), 7);
  EXPECT_EQ(lines[9], "NV# = # NVLinks through switches");
}

TEST(GpuMatrix, marks_and_explains_only_what_occurs) {
  GpuTopology topology = topology_of(4, [](GpuLink& link) {
    link.pcie = PcieWay::host_bridge;
    link.atomics = false;
    if (link.from + link.to != 3) return;
    link.access = false;
    link.reason = "the chipset does not support it";
  });
  topology.links[0].access.reset();
  topology.links[0].reason = "the driver does not answer";
  const std::string text = gpu_matrix(topology);
  EXPECT_TRUE(contains(text, "PHB!")) << text;
  EXPECT_TRUE(contains(text, "PHB~")) << text;
  EXPECT_TRUE(contains(text,
                       "PHB = PCIe and the CPU's host bridge, ! = cannot map the other's memory, "
                       "~ = no native atomics, ? behind a link"))
      << text;
  EXPECT_TRUE(contains(text, "\n0-3 1-2: the chipset does not support it")) << text;
  EXPECT_TRUE(contains(text, "\n0->1: the driver does not answer")) << text;
  EXPECT_FALSE(contains(text, "NV#")) << text;
}

TEST(GpuMatrix, many_pairs_with_one_reason_are_not_all_listed) {
  const std::string text = gpu_matrix(topology_of(8, [](GpuLink& link) {
    link.access = false;
    link.reason = "so";
  }));
  EXPECT_TRUE(contains(text, "0-1 0-2 0-3 0-4 0-5 0-6 0-7 1-2 and 20 more: so")) << text;
}

TEST(GpuMatrix, gaps_are_told_even_without_links) {
  GpuTopology topology;
  topology.gaps = {"no NVML", "something else"};
  EXPECT_EQ(gpu_matrix(topology), "no NVML\nsomething else");
}

TEST(GpuMatrix, json_says_null_for_what_is_unknown) {
  GpuTopology topology = topology_of(2, [](GpuLink& link) { link.access.reset(); });
  topology.links[1].nvlinks = 4;
  const nlohmann::ordered_json json = gpu_links_json(topology);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_TRUE(json[0]["access"].is_null());
  EXPECT_TRUE(json[0]["nvlinks"].is_null());
  EXPECT_TRUE(json[0]["reason"].is_null());
  EXPECT_EQ(json[0]["link"], "?");
  EXPECT_EQ(json[1]["link"], "NV4");
  EXPECT_EQ(json[1]["native_atomics"], true);
}

TEST(InfoReport, has_the_matrix_in_both_forms) {
  Report report;
  for (int gpu = 0; gpu < 2; ++gpu) {
    port::memory::CudaDeviceSummary& device = report.cuda.devices.emplace_back();
    device.ordinal = gpu;
  }
  report.topology = topology_of(2, [](GpuLink& link) { link.nvlinks = 2; });
  report.topology.mig = {false, std::nullopt};
  report.topology.gaps = {"a gap"};
  EXPECT_TRUE(contains(to_text(report), "GPU links    "));
  EXPECT_TRUE(contains(to_text(report), "\n             GPU 1")) << "the matrix is indented as a whole";
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["cuda"]["links"].size(), 2u);
  EXPECT_EQ(json["cuda"]["links_unknown"][0], "a gap");
  EXPECT_EQ(json["cuda"]["gpus"][0]["mig_on"], false);
  EXPECT_TRUE(json["cuda"]["gpus"][1]["mig_on"].is_null());
}

}  // namespace
}  // namespace brant::cli::info
