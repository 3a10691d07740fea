#include "bench/model/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "brant/base/status.h"

namespace brant::bench::model {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;

Json json_of(const Figure& figure) { return Json::array({figure.value, figure.low, figure.high}); }

double number_of(const Json& json) {
  const double value = json.get<double>();
  if (!std::isfinite(value) || value < 0) throw std::invalid_argument("a figure is negative or no number");
  return value;
}
double rate_of(const Json& json) {
  const double value = number_of(json);
  if (value == 0) throw std::invalid_argument("a rate is 0");
  return value;
}
Figure figure_of(const Json& json) { return {number_of(json.at(0)), number_of(json.at(1)), number_of(json.at(2))}; }
/// Of a rate that times are divided by.
Figure figure_of_rate(const Json& json) {
  Figure figure = figure_of(json);
  figure.value = rate_of(json.at(0));
  return figure;
}

/// Its members, into the object of what it is a fit of.
void add(Json& json, const PiecewisePostal& postal) {
  Json& segments = json["segments"] = Json::array();
  for (const Postal& each : postal.segments) {
    segments.push_back({{"up_to", std::isfinite(each.up_to) ? Json(each.up_to) : Json(nullptr)},
                        {"alpha_us", json_of(each.alpha_us)},
                        {"us_per_byte", json_of(each.us_per_byte)}});
  }
  json["r2"] = postal.r2;
  json["residual"] = postal.residual;
}

PiecewisePostal postal_of(const Json& json) {
  PiecewisePostal postal;
  for (const Json& each : json.at("segments")) {
    const Json& up_to = each.at("up_to");
    postal.segments.push_back({figure_of(each.at("alpha_us")), figure_of(each.at("us_per_byte")),
                               up_to.is_null() ? std::numeric_limits<double>::infinity() : number_of(up_to)});
  }
  if (postal.segments.empty()) throw std::invalid_argument("a path has no segment");
  postal.r2 = json.at("r2").get<double>();
  postal.residual = number_of(json.at("residual"));
  return postal;
}

Json json_of(const PathParameters& path) {
  Json json = {{"path", path.path}, {"from", path.from}, {"to", path.to}};
  add(json, path.postal);
  json["best_gb_s"] = path.best_gb_s;
  if (path.rate) {
    const MaxRate& rate = *path.rate;
    json["max_rate"] = {{"alpha_us", rate.alpha_us},
                        {"first_gb_s", json_of(rate.rates.first)},
                        {"more_gb_s", rate.rates.more ? json_of(*rate.rates.more) : Json(nullptr)},
                        {"node_gb_s", rate.rates.node ? json_of(*rate.rates.node) : Json(nullptr)},
                        {"residual", rate.residual}};
  }
  return json;
}

MaxRate max_rate_of(const Json& json) {
  MaxRate rate;
  rate.alpha_us = number_of(json.at("alpha_us"));
  rate.rates.first = figure_of_rate(json.at("first_gb_s"));
  if (const Json& more = json.at("more_gb_s"); !more.is_null()) rate.rates.more = figure_of(more);
  if (const Json& node = json.at("node_gb_s"); !node.is_null()) rate.rates.node = figure_of_rate(node);
  rate.residual = number_of(json.at("residual"));
  return rate;
}

PathParameters path_of(const Json& json) {
  PathParameters path;
  path.path = json.at("path").get<std::string>();
  path.from = json.at("from").get<std::string>();
  path.to = json.at("to").get<std::string>();
  path.postal = postal_of(json);
  path.best_gb_s = rate_of(json.at("best_gb_s"));
  if (json.contains("max_rate")) path.rate = max_rate_of(json.at("max_rate"));
  return path;
}

Parameters parameters_of(const Json& json) {
  if (json.at("brant_model").get<int>() != kVersion) throw std::invalid_argument("it is of another version");
  Parameters all;
  const Json& machine = json.at("machine");
  all.brant = machine.at("brant").get<std::string>();
  all.ucx = machine.at("ucx").get<std::string>();
  all.cuda = machine.at("cuda").get<std::string>();
  all.host = machine.at("host").get<std::string>();
  all.gpus = machine.at("gpus").get<std::vector<std::string>>();
  all.pairs = json.at("pairs").get<int>();
  for (const Json& path : json.at("paths")) all.paths.push_back(path_of(path));
  const Json& messages = json.at("messages_us");
  all.messages = {figure_of(messages.at("send")), figure_of(messages.at("receive")), figure_of(messages.at("gap")),
                  figure_of(messages.at("latency"))};
  for (const Json& copy : json.at("copies")) {
    all.copies.push_back({copy.at("what").get<std::string>(), number_of(copy.at("us")), rate_of(copy.at("best_gb_s")),
                          rate_of(copy.at("large_gb_s"))});
  }
  if (const Json& notify = json.at("notify_us"); !notify.is_null())
    all.notify = {number_of(notify.at("to_host")), number_of(notify.at("to_device"))};
  if (const Json pack = json.value("pack", Json()); !pack.is_null())  // files of before it was measured have none
    all.pack = {postal_of(pack), rate_of(pack.at("best_gb_s"))};
  all.notes = json.at("notes").get<std::vector<std::string>>();
  return all;
}

}  // namespace

const CopyParameters* Parameters::copy(const std::string& what) const {
  const auto found =
      std::find_if(copies.begin(), copies.end(), [&](const CopyParameters& each) { return each.what == what; });
  return found == copies.end() ? nullptr : &*found;
}

std::string to_json(const Parameters& all) {
  Json json;
  json["brant_model"] = kVersion;
  json["machine"] = {
      {"brant", all.brant}, {"ucx", all.ucx}, {"cuda", all.cuda}, {"host", all.host}, {"gpus", all.gpus}};
  json["pairs"] = all.pairs;
  json["paths"] = Json::array();
  for (const PathParameters& path : all.paths) json["paths"].push_back(json_of(path));
  json["messages_us"] = {{"send", json_of(all.messages.send)},
                         {"receive", json_of(all.messages.receive)},
                         {"gap", json_of(all.messages.gap)},
                         {"latency", json_of(all.messages.latency)}};
  json["copies"] = Json::array();
  for (const CopyParameters& copy : all.copies) {
    json["copies"].push_back(
        {{"what", copy.what}, {"us", copy.us}, {"best_gb_s", copy.best_gb_s}, {"large_gb_s", copy.large_gb_s}});
  }
  json["notify_us"] = nullptr;
  if (all.notify) json["notify_us"] = {{"to_host", all.notify->to_host}, {"to_device", all.notify->to_device}};
  json["pack"] = nullptr;
  if (all.pack) {
    json["pack"] = Json::object();
    add(json["pack"], all.pack->postal);
    json["pack"]["best_gb_s"] = all.pack->best_gb_s;
  }
  json["notes"] = all.notes;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Parameters parse_parameters(const std::string& text, const std::string& file) {
  try {
    return parameters_of(Json::parse(text));
  } catch (const std::exception& fault) {
    throw Error(Status::invalid_argument, fmt::format("{} holds no parameters of models ({}): run `brant calibrate "
                                                      "--model` again",
                                                      file, fault.what()));
  }
}

}  // namespace brant::bench::model
