#pragma once

#include <string>

#include "core/error.hpp"

namespace offload::net {

/// The reason of the oldest error in this thread's OpenSSL queue, "unknown error" if it is empty;
/// empties the queue. Any thread.
std::string take_openssl_error();

/// Throws the Error "`action`: reason", with the reason taken from OpenSSL's queue.
[[noreturn]] void throw_openssl_error(const std::string& action,
                                      core::ErrorCode code = core::ErrorCode::invalid_value);

}  // namespace offload::net
