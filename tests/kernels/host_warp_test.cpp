#include "tests/kernels/bodies/host_warp.hpp"

#include <atomic>
#include <functional>

#include "tests/kernels/bodies/group_body.hpp"
#include "tests/kernels/bodies/serve_body.hpp"
#include "tests/kernels/bodies/services_body.hpp"
#include "tests/kernels/bodies/slot_batch_body.hpp"

/// Runs the bodies on warps and blocks of threads: each of their steps is a barrier, so fewer
/// cases.
namespace offload::kernels::test {

using Groups = testing::Types<HostWarpRunner<32>, HostWarpRunner<64>, HostWarpRunner<128>>;

INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, Group, Groups);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, SlotBatches, Groups);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, Serve, testing::Types<HostWarpRunner<32>>);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, ServicesRight, testing::Types<HostWarpRunner<32>>);

/// A warp whose lane 0 reads the header only once the other lanes have read what they read before
/// they know of it; between the two, `write` writes the slot.
class LateHeaderWarp : public HostWarp {
 public:
  struct Moment {
    std::function<void()> write;
    std::atomic<std::uint32_t> lanes_that_have_read{0};
    bool written = false;  ///< lane 0's
  };

  LateHeaderWarp(HostLanes& lanes, std::uint32_t lane, Moment& moment)
      : HostWarp(lanes, lane), moment_(&moment) {}
  [[nodiscard]] std::uint32_t lane() const {
    if (HostWarp::lane() == 0 && !moment_->written) {
      while (moment_->lanes_that_have_read.load() != size() - 1) std::this_thread::yield();
      moment_->write();
      moment_->written = true;
    }
    return HostWarp::lane();
  }
  [[nodiscard]] std::uint32_t from_first(std::uint32_t value) const {
    if (HostWarp::lane() != 0) ++moment_->lanes_that_have_read;
    return HostWarp::from_first(value);
  }

 private:
  Moment* moment_;
};

// The flags of its packets are there before their data: only the header says that all of it is.
TEST(WrittenInPieces, PacketsAreReadAfterTheHeader) {
  constexpr std::uint32_t kLanes = 32;
  const Octets message = random_octets(kMaxPacketPayload);
  TestChannel<HostRunner> channel(4, 1000);
  const std::uint32_t flag = channel.layout().flag_of(1);
  const Slot slot = channel.channel().request(1);
  for (std::uint32_t i = 1; i < kMaxPackets; ++i) store_packet(slot.packets + i, {{}, flag});
  LateHeaderWarp::Moment moment;
  moment.write = [&] { channel.post(1, message); };
  const HostRunner::Memory memory(sizeof(Staging));
  auto& staging = *reinterpret_cast<Staging*>(memory.data());
  HostLanes lanes(kLanes);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      threads.emplace_back([&, lane] {
        const LateHeaderWarp warp(lanes, lane, moment);
        respond(warp, channel.channel(), 1, Reverse{}, staging,
                receive<true>(warp, channel.channel(), 1, staging));
      });
    }
  }
  EXPECT_EQ(channel.response(1), expected_response("reverse", message));
}

}  // namespace offload::kernels::test
