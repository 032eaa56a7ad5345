#include <cstdlib>

#include "tests/comch/conformance/suite.hpp"
#include "tests/rdma/guest/unordered_writes.hpp"

/// Where there is a device, whose address RDMA_GUEST_ADDRESS is. Its writes are placed in any
/// order: unordered_writes.cpp is linked into the program.
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

/// Sessions whose sides write each other's slots.
class Slots : public Sessions {};

// Without this, the suite might pass on a device that keeps the order.
TEST_P(Slots, WritesChangePlaces) {
  const WorkerSide worker(server_->address());
  const std::uint64_t before = rdma::test::unordered_pieces();
  EXPECT_TRUE(support::eventually([&, seed = 0U]() mutable {
    expect_served(kDepth, kLongest, seed += 100);
    return rdma::test::unordered_pieces() != before;
  }));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Rdma, Sessions, testing::Values(kRdma), name_of);
INSTANTIATE_TEST_SUITE_P(RdmaSlots, Sessions, testing::Values(kRdmaSlots), name_of);
INSTANTIATE_TEST_SUITE_P(RdmaSlots, Slots, testing::Values(kRdmaSlots), name_of);
INSTANTIATE_TEST_SUITE_P(Rdma, Lies, testing::Values(kRdma), name_of);

}  // namespace offload::comch::conformance
