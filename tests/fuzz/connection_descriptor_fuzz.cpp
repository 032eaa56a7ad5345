#include "rdma/path/connection_descriptor.hpp"
#include "tests/fuzz/enveloped.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offload;
  fuzz::run_enveloped<rdma::ConnectionDescriptor>(rdma::kDescriptorEnvelope, {data, size});
  return 0;
}
