#pragma once

#include <cerrno>
#include <exception>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::softcard {

/// Returns what `call` returns; for an exception the errno of it, which is not 0.
template <class Function>
int guarded_number(Function&& call) noexcept {
  try {
    call();
    return 0;
  } catch (const core::Error& error) {
    core::log_error("software card: {}", error.what());
    return error.system_errno() != 0 ? error.system_errno() : EIO;
  } catch (const std::exception& error) {
    core::log_error("software card: {}", error.what());
    return ENOMEM;
  }
}

/// Returns the pointer that `make` returns; for an exception null, with errno.
template <class Function>
auto guarded(Function&& make) noexcept -> decltype(make()) {
  decltype(make()) made = nullptr;
  const int errnum = guarded_number([&] { made = make(); });
  if (errnum != 0) errno = errnum;
  return made;
}

}  // namespace offload::softcard
