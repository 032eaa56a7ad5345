#include <cstdlib>

#include "tests/comch/conformance/suite.hpp"

/// Where there is a device, whose address RDMA_GUEST_ADDRESS is.
namespace offload::comch::conformance {
namespace {

const TestedTransport kRdma{
    "rdma", [](const std::string&) {
      const char* const address = std::getenv("RDMA_GUEST_ADDRESS");
      return with_key(std::string("rdma:") + (address != nullptr ? address : "?") + ":0");
    }};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Rdma, Sessions, testing::Values(kRdma), name_of);
INSTANTIATE_TEST_SUITE_P(Rdma, Lies, testing::Values(kRdma), name_of);

}  // namespace offload::comch::conformance
