#pragma once

#include <functional>
#include <optional>

#include <CLI/CLI.hpp>

#include "brant/brant.h"

/// What every program here does around its work: it reads its options, and says once what went wrong.
namespace apps {

/// Whether this is the first process of its job, as its launcher says; for messages of before there is a Runtime.
bool is_first_process();

/// Parses, then calls `take`, which may throw CLI::ValidationError too. Nothing: go on. Else the program has done what
/// was asked (--help) or said what is wrong, and ends with this exit code. Only the first process of a job prints.
std::optional<int> parse(CLI::App& app, int argc, char** argv, const std::function<void()>& take);

/// Makes the runtime and calls `job`. Where that fails, the first process has time to say why before this one goes.
void with_runtime(const brant::RuntimeOptions& options, const std::function<void(brant::Runtime&)>& job);

/// All of `main`: gives the exit code of `program`, or 1 where it throws, which is told on stderr.
int run_program(const std::function<int()>& program);

/// Throws no_memory where a process has not got `bytes` of a kind; `what` begins the sentence.
void require_memory(brant::Runtime& runtime, brant::MemoryKind kind, double bytes, const std::string& what);

}  // namespace apps
