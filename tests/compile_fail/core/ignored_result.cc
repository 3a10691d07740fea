// Results that are not looked at. What compiles with g++ 12 although it should not, is in docs/gotchas/coroutines.md.
#include "brant/core/operation.h"
#include "brant/core/sinks.h"

using namespace brant;

OpResult outcome(const Operation& operation) { return operation.result(); }

void use(const Operation& operation) {
#if CASE == 0
  if (!outcome(operation).ok()) return;
#else
  outcome(operation);
#endif
}
