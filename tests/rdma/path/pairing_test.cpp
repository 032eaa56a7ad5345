#include "rdma/path/pairing.hpp"

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

class PairingTest : public FakeDeviceTest {
 protected:
  PairingTest() { queue_.initialize(); }

  /// The attributes of INIT → RTR, and of RTR → RTS.
  static const ibv_qp_attr& rtr() { return fake().queue_pairs.at(0)->modified.at(1); }
  static const ibv_qp_attr& rts() { return fake().queue_pairs.at(0)->modified.at(2); }

  DeviceContext device_{"fake0"};
  ProtectionDomain domain_{device_};
  CompletionQueue completions_{device_, 16};
  QueuePair queue_{domain_, completions_, completions_, {}};
};

TEST_F(PairingTest, AnEndMayWantASmallerMtu) {
  fake().port.active_mtu = IBV_MTU_4096;
  PathOptions options;
  options.most_mtu = IBV_MTU_512;
  Pairing pairing(device_, options);
  EXPECT_EQ(pairing.describe(queue_).mtu, IBV_MTU_512);  // so the peer takes it too
  auto peer = a_peer();
  peer.mtu = IBV_MTU_2048;
  pairing.connect(queue_, peer);
  EXPECT_EQ(rtr().path_mtu, IBV_MTU_512);
}

TEST_F(PairingTest, ADescriptorHasThePortTheGidAndTheLimits) {
  const auto descriptor = Pairing(device_, {}).describe(queue_);
  EXPECT_EQ(descriptor.qp_type, QpType::rc);
  EXPECT_TRUE(descriptor.ethernet);
  EXPECT_EQ(descriptor.lid, 0);
  EXPECT_EQ(to_string(descriptor.gid), "10.0.0.1");
  EXPECT_EQ(descriptor.qp_num, queue_.qp_num());
  EXPECT_LE(descriptor.psn, kMax24Bits);
  EXPECT_EQ(descriptor.mtu, IBV_MTU_1024);
  EXPECT_EQ(descriptor.max_dest_rd_atomic, 16);
}

TEST_F(PairingTest, OverInfiniBandADescriptorHasTheLid) {
  fake().port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  fake().port.lid = 9;
  const auto descriptor = Pairing(device_, {}).describe(queue_);
  EXPECT_FALSE(descriptor.ethernet);
  EXPECT_EQ(descriptor.lid, 9);
}

TEST_F(PairingTest, OptionsAndDescriptorBecomeAttributes) {
  PathOptions options;
  options.rtr.ah_attr.grh.hop_limit = 3;
  options.rtr.ah_attr.grh.traffic_class = 106;
  options.rtr.ah_attr.sl = 2;
  options.rtr.min_rnr_timer = 12;
  options.rts.timeout = 10;
  options.rts.retry_cnt = 5;
  options.rts.rnr_retry = 4;
  Pairing pairing(device_, options);
  EXPECT_EQ(pairing.max_rd_atomic(), 0);
  auto peer = a_peer();
  peer.mtu = IBV_MTU_512;
  pairing.connect(queue_, peer);
  EXPECT_EQ(rtr().dest_qp_num, 77U);
  EXPECT_EQ(rtr().rq_psn, 5U);
  EXPECT_EQ(rtr().path_mtu, IBV_MTU_512);
  EXPECT_EQ(rtr().max_dest_rd_atomic, 16);
  EXPECT_EQ(rtr().min_rnr_timer, 12);
  EXPECT_EQ(rtr().ah_attr.is_global, 1);
  EXPECT_EQ(rtr().ah_attr.sl, 2);
  EXPECT_TRUE(equal(rtr().ah_attr.grh.dgid, peer.gid));
  EXPECT_EQ(rtr().ah_attr.grh.sgid_index, 1);
  EXPECT_EQ(rtr().ah_attr.grh.hop_limit, 3);
  EXPECT_EQ(rtr().ah_attr.grh.traffic_class, 106);
  EXPECT_EQ(rts().sq_psn, pairing.describe(queue_).psn);
  EXPECT_EQ(rts().timeout, 10);
  EXPECT_EQ(rts().retry_cnt, 5);
  EXPECT_EQ(rts().rnr_retry, 4);
  EXPECT_EQ(rts().max_rd_atomic, 4);  // what the peer answers
  EXPECT_EQ(pairing.max_rd_atomic(), 4);
}

// A packet that may cross no router does not reach a peer in another subnet.
TEST_F(PairingTest, WithoutOptionsAPathCrossesRoutersAndRetries) {
  Pairing pairing(device_, {});
  pairing.connect(queue_, a_peer());
  EXPECT_EQ(rtr().ah_attr.grh.hop_limit, 64);
  EXPECT_EQ(rtr().ah_attr.port_num, 1);
  EXPECT_NE(rtr().min_rnr_timer, 0);  // the code of 655 ms
  EXPECT_EQ(rts().timeout, 14);
  EXPECT_EQ(rts().retry_cnt, 6);
  EXPECT_EQ(rts().rnr_retry, 6);
}

// A peer of InfiniBand that no subnet manager gave a GID has a LID alone.
TEST_F(PairingTest, APeerWithoutAGidIsReachedByItsLid) {
  fake().port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  Pairing pairing(device_, {});
  auto peer = a_peer();
  peer.ethernet = false;
  peer.gid = {};
  peer.lid = 17;
  pairing.connect(queue_, peer);
  EXPECT_EQ(rtr().ah_attr.is_global, 0);
  EXPECT_EQ(rtr().ah_attr.dlid, 17);
}

TEST_F(PairingTest, ADeviceMayHaveMoreReadsThanADescriptorHasBits) {
  fake().device.max_qp_rd_atom = 1000;
  fake().device.max_qp_init_rd_atom = -1;
  const DeviceContext device("fake0");
  Pairing pairing(device, {});
  EXPECT_EQ(pairing.describe(queue_).max_dest_rd_atomic, 255);
  pairing.connect(queue_, a_peer());
  EXPECT_EQ(pairing.max_rd_atomic(), 0);
}

TEST_F(PairingTest, TheDeviceAndThePortLimitThePeer) {
  Pairing pairing(device_, {});
  auto peer = a_peer();
  peer.mtu = IBV_MTU_4096;
  peer.max_dest_rd_atomic = 100;
  pairing.connect(queue_, peer, 0x123456);
  EXPECT_EQ(rtr().path_mtu, IBV_MTU_1024);
  EXPECT_EQ(rts().max_rd_atomic, 8);
  EXPECT_EQ(rts().sq_psn, 0x123456U);
}

TEST_F(PairingTest, APortWithoutLinkOrGidIsRefused) {
  fake().port.state = IBV_PORT_DOWN;
  EXPECT_EQ(thrown_by([&] { const Pairing pairing(device_, {}); }).code(),
            ErrorCode::not_connected);
  fake().port.state = IBV_PORT_ACTIVE;
  PathOptions other;
  other.gid.address = parse_gid("10.9.9.9");
  EXPECT_EQ(thrown_by([&] { const Pairing pairing(device_, other); }).code(), ErrorCode::not_found);
}

TEST_F(PairingTest, APeerOfAnotherKindIsRefused) {
  Pairing pairing(device_, {});
  auto peer = a_peer();
  peer.qp_type = QpType::uc;
  EXPECT_EQ(thrown_by([&] { pairing.connect(queue_, peer); }).code(), ErrorCode::invalid_value);
  peer = a_peer();
  peer.ethernet = false;
  EXPECT_EQ(thrown_by([&] { pairing.connect(queue_, peer); }).code(), ErrorCode::invalid_value);
}

}  // namespace
}  // namespace offload::rdma
