// A user's library: chares of C++ that Python calls, and that call chares of Python. test_cpp.py loads it.
#include <array>
#include <complex>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "brant/chare.h"
#include "brant/chare/expose.h"
#include "brant/chare/python.h"

namespace cpp_chares {

using Kinds = std::tuple<bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                         std::uint32_t, std::uint64_t, float, double, std::complex<float>, std::complex<double>>;

enum class Colour : std::uint8_t { red, green };

class Block : public brant::Chare<Block> {
 public:
  Block(double first, std::string name) : value_(first), name_(std::move(name)) {}

  void scale(double factor) { value_ *= factor; }
  double value() { return value_; }
  std::pair<std::string, int> where() { return {name_, chares().rank().value * 100 + index()[0]}; }
  double sum(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  brant::Task<double> wait_and_add(double more) {
    for (int round = 0; round < 3; ++round) co_await this_element().ask<&Block::value>();
    co_return value_ + more;
  }
  void fail(const std::string& text) { throw std::runtime_error(text); }

  Kinds echo_kinds(Kinds values) { return values; }
  std::vector<float> echo_floats(std::vector<float> values) { return values; }
  std::vector<std::array<double, 3>> echo_points(std::vector<std::array<double, 3>> values) { return values; }
  std::vector<std::string> echo_texts(std::vector<std::string> values) { return values; }
  std::map<std::string, std::vector<int>> echo_map(std::map<std::string, std::vector<int>> values) { return values; }
  std::set<std::vector<int>> set_of_lists() { return {{1, 2}, {3}}; }
  std::set<int> echo_set(std::set<int> values) { return values; }
  std::vector<bool> echo_truths(std::vector<bool> values) { return values; }
  std::optional<double> echo_optional(std::optional<double> value) { return value; }
  std::vector<std::byte> echo_bytes(std::vector<std::byte> value) { return value; }
  std::array<int, 2> echo_pair_of(std::array<int, 2> value) { return value; }
  Colour echo_colour(Colour value) { return value; }
  std::tuple<std::string, std::uint8_t, std::vector<std::complex<double>>, std::string_view> echo_mixed(
      const std::string& text, std::uint8_t number, const std::vector<std::complex<double>>& numbers,
      std::string_view view) {
    return {text, number, numbers, view};
  }

  // Proxies.
  brant::Array<Block> siblings() { return this_array(); }
  brant::Element<Block> me() { return this_element(); }
  brant::Task<double> value_of(brant::Element<Block> other) { co_return co_await other.ask<&Block::value>(); }
  void scale_all(const brant::Array<Block>& all, double factor) { all.call<&Block::scale>(factor); }

 private:
  double value_;
  std::string name_;
};

/// Calls chares of Python.
class Caller : public brant::Chare<Caller, brant::Index<2>> {
 public:
  Caller() = default;

  void note(const brant::PythonElement& to, int times) {
    for (int time = 0; time < times; ++time) {
      const std::array<double, 3> three{1.5, 2.5, time + 0.5};
      to.call("note", time, "text", std::span<const double>(three));
    }
  }
  void note_all(const brant::PythonArray& to) { to.call("note", 7, std::string("all"), std::vector<double>{1}); }
  brant::Task<std::pair<double, std::string>> mean(brant::PythonElement of) {
    const std::vector<double> values(3, 3.0);
    const double mean = co_await of.ask<double>("mean", values);
    std::string name = co_await of.ask<std::string>("slow_name", index()[0], index()[1]);
    co_return std::pair<double, std::string>{mean, std::move(name)};
  }
  brant::Task<std::string> text_of_failure(brant::PythonElement of, std::string method) {
    try {
      co_await of.ask<int>(method, 5);
    } catch (const brant::Error& error) {
      co_return error.what();
    }
    co_return "";
  }
  void call_without_asking(const brant::PythonElement& to, const std::string& method) { to.call(method, 5); }
  /// In the wrong order: conditions of Python put them right.
  void step_down(const brant::PythonElement& to, int from) {
    for (int step = from; step >= 0; --step) to.call("step", step);
  }
  brant::Task<int> broadcast_data(brant::PythonArray to) {
    bytes_.assign(10'000, std::byte{3});
    to.call("keep_bytes", brant::device(brant::ConstBuffer(bytes_.data(), bytes_.size())));
    co_await chares().quiescence();
    co_return to.extent(0);
  }
  brant::Task<std::string> outside(brant::PythonArray of) {
    try {
      of[99].call("note", 1);
    } catch (const brant::Error& error) {
      co_return error.what();
    }
    co_return "";
  }
  brant::Task<int> hand_back(brant::PythonArray of) {
    int sum = 0;
    for (int i = 0; i < of.extent(0); ++i) sum += co_await of[i].ask<int>("take_proxies", of, of[i], this_array());
    co_return sum;
  }

 private:
  std::vector<std::byte> bytes_;
};

/// Makes chares of Python.
class Maker : public brant::Chare<Maker> {
 public:
  Maker() = default;

  brant::PythonArray make(const std::string& class_name, const std::vector<int>& ranks) {
    const std::array<double, 2> pair{0.5, 1.5};
    return brant::create_python_array(chares(), class_name, brant::Index<2>(2, 3), brant::Placement::listed(ranks),
                                      "a text", 7, std::span<const double>(pair));
  }
  /// The sum of what each says, in the order of indices.
  brant::Task<std::string> make_and_ask(std::string class_name) {
    const auto made = brant::create_python_array(chares(), class_name, brant::Index<1>(3));
    std::string all;
    for (int i = 0; i < 3; ++i) all += co_await made[i].ask<std::string>("say");
    co_return all;
  }
};

/// Arguments that travel beside the message.
class Data : public brant::Chare<Data> {
 public:
  Data() = default;

  std::tuple<std::size_t, int, bool> take(brant::DeviceData bytes, int step) {
    return {bytes.bytes(), step, brant::host_accessible(bytes.kind())};
  }
  double total(const brant::HostData<double>& values, const std::string&, const brant::HostData<int>& more) {
    double sum = 0;
    for (const double value : values.items()) sum += value;
    for (const int value : more.items()) sum += value;
    return sum;
  }
  /// Keeps it, and sends it on to Python.
  brant::Task<int> pass_on(brant::DeviceData bytes, brant::PythonElement to) {
    co_return co_await to.ask<int>("take_bytes", brant::device(bytes), 3);
  }
  brant::Task<double> send_numbers(brant::PythonElement to) {
    numbers_.assign(5000, 0.5);
    co_return co_await to.ask<double>("take_numbers", "half", brant::no_copy(std::span<const double>(numbers_)));
  }

 private:
  std::vector<double> numbers_;
};

// NOLINTBEGIN(bugprone-throwing-static-initialization): memory of some bytes, when the library is opened
const auto exposed_block = brant::expose<Block>("Block")
                               .constructor<double, std::string>()
                               .entry<&Block::scale>()
                               .entry<&Block::value>()
                               .entry<&Block::where>()
                               .entry<&Block::sum>()
                               .entry<&Block::wait_and_add>()
                               .entry<&Block::fail>()
                               .entry<&Block::echo_kinds>()
                               .entry<&Block::echo_floats>()
                               .entry<&Block::echo_points>()
                               .entry<&Block::echo_texts>()
                               .entry<&Block::echo_map>()
                               .entry<&Block::echo_set>()
                               .entry<&Block::set_of_lists>()
                               .entry<&Block::echo_truths>()
                               .entry<&Block::echo_optional>()
                               .entry<&Block::echo_bytes>()
                               .entry<&Block::echo_pair_of>()
                               .entry<&Block::echo_colour>()
                               .entry<&Block::echo_mixed>()
                               .entry<&Block::siblings>()
                               .entry<&Block::me>("this_one")
                               .entry<&Block::value_of>()
                               .entry<&Block::scale_all>();
const auto exposed_caller = brant::expose<Caller>("Caller")
                                .constructor<>()
                                .entry<&Caller::note>()
                                .entry<&Caller::note_all>()
                                .entry<&Caller::mean>()
                                .entry<&Caller::text_of_failure>()
                                .entry<&Caller::call_without_asking>()
                                .entry<&Caller::step_down>()
                                .entry<&Caller::broadcast_data>()
                                .entry<&Caller::outside>()
                                .entry<&Caller::hand_back>();
const auto exposed_maker =
    brant::expose<Maker>("Maker").constructor<>().entry<&Maker::make>().entry<&Maker::make_and_ask>();
const auto exposed_data = brant::expose<Data>("Data")
                              .constructor<>()
                              .entry<&Data::take>()
                              .entry<&Data::total>()
                              .entry<&Data::pass_on>()
                              .entry<&Data::send_numbers>();

// NOLINTEND(bugprone-throwing-static-initialization)

}  // namespace cpp_chares
