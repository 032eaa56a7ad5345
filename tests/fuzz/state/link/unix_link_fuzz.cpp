#include <unistd.h>

#include <string>

#include "tests/fuzz/state/link/link_run.hpp"

/// The link over a Unix socket: link_run.hpp.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  offload::core::set_log_level("off");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string address = "unix:/tmp/offload-fuzz-" + std::to_string(::getpid());
  offload::fuzz::run_link(data, size, address);
  return 0;
}
