#pragma once

#include "core/error.hpp"
#include "core/status.hpp"
#include "doca/include/doca_error.h"

/// How calls of the C interface report errors of the library's objects.
namespace offload::doca {

/// The code of the C interface for an error of the library.
doca_error_t to_doca(core::ErrorCode code) noexcept;
inline doca_error_t to_doca(core::Status status) noexcept {
  return status.ok() ? DOCA_SUCCESS : to_doca(status.error());
}

/// Returns the code for the exception being handled, and logs its text as a line of the library.
doca_error_t handle_exception(const char* call) noexcept;

/// Runs the body of the call named `call`, and turns an exception of it into a code.
template <class Body>
doca_error_t guarded(const char* call, Body&& body) noexcept {
  try {
    body();
    return DOCA_SUCCESS;
  } catch (...) {
    return handle_exception(call);
  }
}

/// Returns whether one of the pointers is null.
template <class... Pointers>
bool any_null(const Pointers*... pointers) noexcept {
  return (... || (pointers == nullptr));
}

}  // namespace offload::doca
