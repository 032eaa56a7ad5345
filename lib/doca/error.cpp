#include "core/error.hpp"

#include <array>
#include <exception>
#include <new>

#include "core/log.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_error.h"
#include "doca/include/doca_version.h"

namespace offload::doca {
namespace {

using core::ErrorCode;

struct Named {
  const char* name;
  const char* description;
};

constexpr std::array<Named, DOCA_ERROR_TOO_BIG + 1> kNamed{{
    {"DOCA_SUCCESS", "success"},
    {"DOCA_ERROR_UNKNOWN", "unknown error"},
    {"DOCA_ERROR_NOT_PERMITTED", "the operation is not permitted"},
    {"DOCA_ERROR_IN_USE", "the object is in use"},
    {"DOCA_ERROR_NOT_SUPPORTED", "the operation is not supported"},
    {"DOCA_ERROR_AGAIN", "temporarily unavailable; try again"},
    {"DOCA_ERROR_INVALID_VALUE", "an argument is invalid"},
    {"DOCA_ERROR_NO_MEMORY", "there is no memory"},
    {"DOCA_ERROR_INITIALIZATION", "the initialization failed"},
    {"DOCA_ERROR_TIME_OUT", "a time limit was reached first"},
    {"DOCA_ERROR_SHUTDOWN", "the object is being shut down"},
    {"DOCA_ERROR_CONNECTION_RESET", "the peer reset the connection"},
    {"DOCA_ERROR_CONNECTION_ABORTED", "the connection was aborted"},
    {"DOCA_ERROR_CONNECTION_INPROGRESS", "the connection is being set up"},
    {"DOCA_ERROR_NOT_CONNECTED", "there is no connection"},
    {"DOCA_ERROR_NO_LOCK", "a lock cannot be taken"},
    {"DOCA_ERROR_NOT_FOUND", "it was not found"},
    {"DOCA_ERROR_IO_FAILED", "the input or output operation failed"},
    {"DOCA_ERROR_BAD_STATE", "the state does not allow the operation"},
    {"DOCA_ERROR_UNSUPPORTED_VERSION", "the version is not supported"},
    {"DOCA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed"},
    {"DOCA_ERROR_DRIVER", "a call of a driver failed"},
    {"DOCA_ERROR_UNEXPECTED", "unexpected error"},
    {"DOCA_ERROR_ALREADY_EXIST", "it exists already"},
    {"DOCA_ERROR_FULL", "there is no room"},
    {"DOCA_ERROR_EMPTY", "there is no entry"},
    {"DOCA_ERROR_IN_PROGRESS", "the operation is in progress"},
    {"DOCA_ERROR_TOO_BIG", "it is too large"},
}};

const Named& named(doca_error_t error) noexcept {
  const auto index = static_cast<std::size_t>(error);
  return kNamed[index < kNamed.size() ? index : std::size_t{DOCA_ERROR_UNKNOWN}];
}

}  // namespace

doca_error_t to_doca(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_value: return DOCA_ERROR_INVALID_VALUE;
    case ErrorCode::not_supported: return DOCA_ERROR_NOT_SUPPORTED;
    case ErrorCode::not_permitted: return DOCA_ERROR_NOT_PERMITTED;
    case ErrorCode::not_found: return DOCA_ERROR_NOT_FOUND;
    case ErrorCode::already_exists: return DOCA_ERROR_ALREADY_EXIST;
    case ErrorCode::in_use: return DOCA_ERROR_IN_USE;
    case ErrorCode::again: return DOCA_ERROR_AGAIN;
    case ErrorCode::in_progress: return DOCA_ERROR_IN_PROGRESS;
    case ErrorCode::no_memory: return DOCA_ERROR_NO_MEMORY;
    case ErrorCode::full: return DOCA_ERROR_FULL;
    case ErrorCode::empty: return DOCA_ERROR_EMPTY;
    case ErrorCode::no_lock: return DOCA_ERROR_NO_LOCK;
    case ErrorCode::timed_out: return DOCA_ERROR_TIME_OUT;
    case ErrorCode::not_connected: return DOCA_ERROR_NOT_CONNECTED;
    case ErrorCode::connection_reset: return DOCA_ERROR_CONNECTION_RESET;
    case ErrorCode::connection_aborted: return DOCA_ERROR_CONNECTION_ABORTED;
    case ErrorCode::connection_in_progress: return DOCA_ERROR_CONNECTION_INPROGRESS;
    case ErrorCode::shutdown: return DOCA_ERROR_SHUTDOWN;
    case ErrorCode::initialization: return DOCA_ERROR_INITIALIZATION;
    case ErrorCode::bad_state: return DOCA_ERROR_BAD_STATE;
    case ErrorCode::unsupported_version: return DOCA_ERROR_UNSUPPORTED_VERSION;
    case ErrorCode::bad_message: return DOCA_ERROR_INVALID_VALUE;
    case ErrorCode::io_failed: return DOCA_ERROR_IO_FAILED;
    case ErrorCode::driver: return DOCA_ERROR_DRIVER;
    case ErrorCode::operating_system: return DOCA_ERROR_OPERATING_SYSTEM;
    case ErrorCode::unexpected: return DOCA_ERROR_UNEXPECTED;
  }
  return DOCA_ERROR_UNKNOWN;
}

doca_error_t handle_exception(const char* call) noexcept {
  try {
    throw;
  } catch (const core::Error& error) {
    core::log_error("{}: {}", call, error.what());
    return to_doca(error.code());
  } catch (const std::bad_alloc&) {
    return DOCA_ERROR_NO_MEMORY;
  } catch (const std::exception& error) {
    core::log_error("{}: {}", call, error.what());
    return DOCA_ERROR_UNEXPECTED;
  } catch (...) {
    return DOCA_ERROR_UNEXPECTED;
  }
}

}  // namespace offload::doca

const char* doca_error_get_name(doca_error_t error) {
  return offload::doca::named(error).name;
}

const char* doca_error_get_descr(doca_error_t error) {
  return offload::doca::named(error).description;
}

const char* doca_version_runtime() {
  return DOCA_VERSION_STRING " (dpu-gpu-offload " OFFLOAD_VERSION ")";
}
