#include "models/mpi/ranks/option_parsing.h"

namespace brant::mpi {
namespace {

const OptionParsing* last_to_parse = nullptr;

template <typename Variable>
Variable* in_program(const ProgramImage& image, const char* name, Variable& shared) noexcept {
  auto* found = static_cast<Variable*>(image.variable(name));
  return found == nullptr ? &shared : found;
}

}  // namespace

OptionParsing::OptionParsing(const ProgramImage& image)
    : index_(in_program(image, "optind", ::optind)),
      errors_(in_program(image, "opterr", ::opterr)),
      option_(in_program(image, "optopt", ::optopt)),
      argument_(in_program(image, "optarg", ::optarg)) {}

OptionParsing::Variables OptionParsing::read() const noexcept { return {*index_, *errors_, *option_, *argument_}; }

void OptionParsing::write(const Variables& variables) const noexcept {
  *index_ = variables.index;
  *errors_ = variables.errors;
  *option_ = variables.option;
  *argument_ = variables.argument;
}

int OptionParsing::parse(const Call& call) {
  const Variables before = read();
  const bool begins = before.index == 0 || call.argv != parsed_;
  if (begins) {
    parsed_ = call.argv;
    arguments_.assign(call.argv, call.argv + call.argc);
    arguments_.push_back(nullptr);
    indices_.clear();
  }
  if (last_to_parse != this && !begins) repeat(call);
  last_to_parse = this;
  indices_.push_back(before.index);
  ::optind = begins && before.index <= 1 ? 0 : before.index;
  ::opterr = before.errors;
  ::optopt = before.option;
  ::optarg = before.argument;
  const int result = call.function(call, call.argc, call.argv);
  write({::optind, ::opterr, ::optopt, ::optarg});
  return result;
}

void OptionParsing::repeat(const Call& call) {
  std::vector<char*> arguments = arguments_;
  Call again = call;
  again.long_index = nullptr;
  ::opterr = 0;
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    ::optind = i == 0 && indices_[i] <= 1 ? 0 : indices_[i];
    again.function(again, static_cast<int>(arguments.size()) - 1, arguments.data());
  }
}

void OptionParsing::resume() noexcept {
  if (!has_copies()) write(kept_);
}

void OptionParsing::suspend() noexcept {
  if (!has_copies()) kept_ = read();
}

}  // namespace brant::mpi
