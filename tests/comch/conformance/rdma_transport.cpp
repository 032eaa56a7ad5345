#include <cstdlib>

#include "tests/comch/conformance/suite.hpp"

/// Where there is a device, whose address RDMA_GUEST_ADDRESS is.
namespace offload::comch::conformance {
namespace {

Address address_of(const std::string&) {
  const char* const address = std::getenv("RDMA_GUEST_ADDRESS");
  return with_key(std::string("rdma:") + (address != nullptr ? address : "?") + ":0");
}

const TestedTransport kRdma{"rdma", &address_of};
/// Both sides write into each other's slots; the worker's back end posts its writes itself.
const TestedTransport kRdmaSlots{"rdma_slots", &address_of,
                                 protocol::kRingsDoorbell | protocol::kWritesSlots};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Rdma, Sessions, testing::Values(kRdma), name_of);
INSTANTIATE_TEST_SUITE_P(RdmaSlots, Sessions, testing::Values(kRdmaSlots), name_of);
INSTANTIATE_TEST_SUITE_P(Rdma, Lies, testing::Values(kRdma), name_of);

}  // namespace offload::comch::conformance
