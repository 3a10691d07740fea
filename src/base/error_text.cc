#include "base/error_text.h"

namespace brant::detail {

std::string text_of(const std::exception_ptr& error, Status& status) {
  status = Status::internal;
  try {
    std::rethrow_exception(error);
  } catch (const Error& thrown) {
    status = thrown.status();
    return thrown.what();
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace brant::detail
