#pragma once

#include "bindings/python/awaitable.h"
#include "brant/brant.h"

namespace brant::python {

/// One operation that cannot be withdrawn, as a put or a collective: a time-out is an answer, and what the operation
/// uses stays held until it has ended.
class OneOperation : public Awaitable {
 public:
  void advance() final;
  void give_up(Status status) final;

 protected:
  /// `post(Op&)` starts it, and gives its status. `seconds`: a time-out, negative for none.
  template <typename Post>
  void start_by(Post&& post, double seconds) {
    op_.delivered = {&OneOperation::on_ended, this};
    started(post(op_), seconds);
  }
  /// It has ended: lets go of what it used.
  virtual void finish() = 0;

  [[nodiscard]] const OpResult& outcome() const noexcept { return outcome_; }
  /// Nobody waited for the outcome.
  [[nodiscard]] bool was_given_up() const noexcept { return given_up_ != Status::ok; }
  /// What the answer is.
  [[nodiscard]] Status status() const noexcept { return was_given_up() ? given_up_ : outcome_.status; }

 private:
  void started(Status posted, double seconds);
  static void on_ended(void* self, const OpResult& result) noexcept;

  Op op_;
  OpResult outcome_;
  bool pending_ = false;
  Status given_up_ = Status::ok;
};

}  // namespace brant::python
