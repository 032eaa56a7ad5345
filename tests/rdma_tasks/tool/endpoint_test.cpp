#include "apps/rdma_tasks/endpoint.hpp"

#include <arpa/inet.h>

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

/// An endpoint of offload-rdma on a device that is not there. tests/rdma_tasks/tool/matrix has both
/// ends.
namespace offload::rdma_tool {
namespace {

using core::ErrorCode;
using rdma::test::fake;
using support::thrown_by;

/// The immediate of a sync.
constexpr std::uint32_t kSyncImmediate = 0xffff'ff01;

/// Answers a sync with its own, and completes the endpoint's with a status.
class SyncingPeer final : public progress::Pollable {
 public:
  explicit SyncingPeer(progress::Engine& engine) : engine_(engine) { engine_.activate(*this); }
  SyncingPeer(const SyncingPeer&) = delete;
  SyncingPeer& operator=(const SyncingPeer&) = delete;
  ~SyncingPeer() { engine_.deactivate(*this); }

  bool poll() override {
    rdma::test::FakeQueuePair& queue = *fake().queue_pairs.at(0);
    if (queue.sends.empty()) return false;
    ibv_wc sync{};
    sync.wc_flags = IBV_WC_WITH_IMM;
    sync.imm_data = htonl(kSyncImmediate);
    fake().finish_receive(queue, sync);
    fake().finish_send(queue, status);
    return true;
  }
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override { return {}; }
  void disarm() override {}

  ibv_wc_status status = IBV_WC_SUCCESS;

 private:
  progress::Engine& engine_;
};

class EndpointTest : public rdma::FakeDeviceTest {
 protected:
  EndpointTest() {
    rdma::ConnectionDescriptor peer;
    peer.gid = rdma::parse_gid("10.0.0.2");
    peer.qp_num = 77;
    endpoint_.connection().connect_to(peer);
  }

  Options options_;
  core::Signals signals_;
  Environment environment_{options_, signals_, Endpoint::completions(options_)};
  Endpoint endpoint_{environment_, options_, 0, nullptr};
  SyncingPeer peer_{environment_.engine()};
};

TEST_F(EndpointTest, SyncsAsOftenAsThePeer) {
  for (int i = 0; i < 10; ++i) EXPECT_NO_THROW(endpoint_.sync());
}

TEST_F(EndpointTest, ASyncThatFailsEndsTheRun) {
  peer_.status = IBV_WC_RETRY_EXC_ERR;
  EXPECT_EQ(thrown_by([&] { endpoint_.sync(); }).code(), ErrorCode::io_failed);
}

// Its acknowledgement was lost, as the peer had ended.
TEST_F(EndpointTest, TheLastSyncMayFailOnceThePeersHasCome) {
  endpoint_.sync();
  environment_.close();
  peer_.status = IBV_WC_RETRY_EXC_ERR;
  EXPECT_NO_THROW(endpoint_.sync());
  EXPECT_FALSE(endpoint_.connection().connected());
}

TEST_F(EndpointTest, AConnectionThatBrokeBeforeTheLastSyncIsAnError) {
  environment_.close();
  peer_.status = IBV_WC_RETRY_EXC_ERR;
  endpoint_.sync();
  EXPECT_EQ(thrown_by([&] { endpoint_.sync(); }).code(), ErrorCode::not_connected);
}

TEST_F(EndpointTest, AFirstMessageThatIsNoHelloEndsTheRun) {
  fake().finish_receive(*fake().queue_pairs.at(0), {});
  const auto why = thrown_by([&] { endpoint_.exchange_hello(); });
  EXPECT_EQ(why.code(), ErrorCode::bad_message);
  EXPECT_NE(std::string(why.what()).find("expected the hello of offload-rdma"), std::string::npos);
}

}  // namespace
}  // namespace offload::rdma_tool
