#include <cstdlib>

#include "tests/comch/conformance/suite.hpp"

/// Where there is a device, whose address RDMA_GUEST_ADDRESS is.
namespace offload::comch::conformance {
namespace {

const Transport kRdma{"rdma", [](const std::string&) {
                        const char* const address = std::getenv("RDMA_GUEST_ADDRESS");
                        return Address{{}, address != nullptr ? address : "", 0, right_key(), true};
                      }};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Rdma, Sessions, testing::Values(kRdma), name_of);
INSTANTIATE_TEST_SUITE_P(Rdma, Lies, testing::Values(kRdma), name_of);

}  // namespace offload::comch::conformance
