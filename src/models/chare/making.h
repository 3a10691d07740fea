#pragma once

#include <exception>
#include <string>

#include "models/chare/latecomers.h"
#include "models/chare/routing.h"

namespace brant::detail {

/// Runs the messages that make and destroy chares and collections of them.
class Making {
 public:
  Making(const ProgramContext& context, Collections& collections, DataCalls& data_calls, Messages& messages,
         ReadyQueue& queue, Ending& ending, ChannelDesk& desk, Latecomers& latecomers, Following& following,
         Routing& routing) noexcept;

  void run_create(am::Message& message, const Envelope& envelope);
  void run_insert(am::Message& message, const Envelope& envelope);
  void run_destroy(am::Message& message, const Envelope& envelope);
  void run_destroy_all(am::Message& message, const Envelope& envelope);

 private:
  void destroy(Collection& collection);
  void fail(const std::string& element, const std::exception_ptr& cause);

  const ProgramContext& context_;
  Collections& collections_;
  DataCalls& data_calls_;
  Messages& messages_;
  ReadyQueue& queue_;
  Ending& ending_;
  ChannelDesk& desk_;
  Latecomers& latecomers_;
  Following& following_;
  Routing& routing_;
};

}  // namespace brant::detail
