#include "bench/model/parameters.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

Parameters some() {
  Parameters all;
  all.brant = "0.1.0";
  all.ucx = "1.22.0";
  all.host = "here";
  all.gpus = {"GPU-1"};
  all.pairs = 2;
  PathParameters path{.path = "ucx", .from = "host", .to = "host", .postal = {}, .rate = {}, .best_gb_s = 7.5};
  path.postal.segments = {{{2, 1.5, 2.5}, {0.1, 0.1, 0.2}, 8192}, {{5, 4, 6}, {0.01, 0.01, 0.01}}};
  path.postal.r2 = 0.99;
  path.postal.residual = 0.02;
  path.rate = MaxRate{5, {.first = {18, 17, 19}, .more = Figure{12, 11, 13}, .node = {}}, 0.01};
  all.paths = {path};
  all.messages = {{0.1, 0.1, 0.1}, {0.2, 0.2, 0.2}, {0.3, 0.3, 0.3}, {0.4, 0.4, 0.4}};
  all.copies = {{"host", 0.1, 20, 10}};
  all.notify = {1.5, 2.5};
  all.pack = PackParameters{path.postal, 1500};
  all.notes = {"no device"};
  return all;
}

TEST(ModelParameters, what_is_written_is_read_again) {
  const std::string text = to_json(some());
  const Parameters read = parse_parameters(text, "file");
  EXPECT_EQ(to_json(read), text);
  EXPECT_TRUE(std::isinf(read.paths.at(0).postal.segments.at(1).up_to));
  EXPECT_EQ(read.paths.at(0).postal.us(4096), 2 + 409.6);
  EXPECT_FALSE(read.paths.at(0).rate->rates.node);
  EXPECT_EQ(read.copy("host")->large_gb_s, 10);
  EXPECT_EQ(read.copy("up"), nullptr);
  EXPECT_EQ(read.pack->best_gb_s, 1500);
  EXPECT_EQ(read.pack->postal.segments.at(0).alpha_us.high, 2.5);
}

TEST(ModelParameters, a_file_of_before_kernels_that_pack_were_measured_is_read) {
  Parameters old = some();
  old.pack.reset();
  std::string text = to_json(old);
  const std::string none = " \"pack\": null,\n";
  ASSERT_NE(text.find(none), std::string::npos) << text;
  EXPECT_FALSE(parse_parameters(text, "file").pack);
  EXPECT_FALSE(parse_parameters(text.erase(text.find(none), none.size()), "file").pack);
}

TEST(ModelParameters, rubbish_is_refused_by_the_name_of_its_file) {
  const std::string good = to_json(some());
  const auto with = [&](const std::string& old, const std::string& instead) {
    std::string text = good;
    const auto at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return text.replace(at, old.size(), instead);
  };
  for (const std::string& text :
       {std::string(), std::string("rubbish"), std::string("[]"), std::string("{}"), good.substr(0, good.size() / 2),
        with("\"brant_model\": 1", "\"brant_model\": 2"), with("\"best_gb_s\": 7.5", "\"best_gb_s\": 0"),
        with("\"best_gb_s\": 7.5", "\"best_gb_s\": -1"), with("\"best_gb_s\": 7.5", "\"best_gb_s\": \"x\""),
        with("\"best_gb_s\": 1500", "\"best_gb_s\": 0"),
        with("\"first_gb_s\": [\n     18.0", "\"first_gb_s\": [\n     0.0"),
        with("\"node_gb_s\": null", "\"node_gb_s\": [0, 0, 1]")}) {
    try {
      static_cast<void>(parse_parameters(text, "/some/file"));
      ADD_FAILURE() << text;
    } catch (const Error& fault) {
      EXPECT_EQ(fault.status(), Status::invalid_argument);
      EXPECT_NE(std::string(fault.what()).find("/some/file"), std::string::npos);
      EXPECT_NE(std::string(fault.what()).find("brant calibrate --model"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace brant::bench::model
