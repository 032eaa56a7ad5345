#pragma once

#include <string>

#include "core/fd.hpp"

namespace offload::core {

/// Opens a regular file for reading. Does not block: another kind of file at that path, such as a
/// FIFO without a writer, is an error (invalid_value). `action` begins the message, as in "cannot
/// read the key file k". Throws Error. Any thread.
Fd open_regular_file(const std::string& path, const std::string& action);

}  // namespace offload::core
