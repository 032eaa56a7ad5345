#include "tests/fuzz/state/link/link_run.hpp"

/// The link over a network, with its data connections: link_run.hpp.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  offload::core::set_log_level("off");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run_link(data, size, "tcp:server:1");
  return 0;
}
