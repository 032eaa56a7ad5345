// Tests of doca_rdma in front of fake_verbs.cpp and fake_cm.cpp: what a real device does seldom.
#include <doca_graph.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "tests/doca/rdma_fixture.hpp"
#include "tests/doca/verbs/fake_device.hpp"
#include "tests/rdma_tasks/fake_cm.hpp"

namespace offload::doca {
namespace {

using rdma::test::fake;
using rdma::test::fake_cm;

/// A context that listens, and accepts all requests.
class DocaFakeRdmaTest : public DocaFakeDeviceTest {
 protected:
  DocaFakeRdmaTest() : server_(std::make_unique<Peer>(dev_)) {
    rdma::test::reset_fake_cm();
    EXPECT_EQ(doca_rdma_set_max_num_connections(server_->rdma, 2), DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_set_user_data(server_->ctx, {.ptr = server_.get()}), DOCA_SUCCESS);
    requests().clear();
    changes() = 0;
    EXPECT_EQ(doca_rdma_set_connection_state_callbacks(server_->rdma, on_request, on_change,
                                                       on_change, on_change),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_start(server_->ctx), DOCA_SUCCESS);
    // A description as a peer has it.
    doca_rdma_connection* exported = nullptr;
    peer_ = server_->make_connection(exported);
    peer_.resize(56);  // with no bytes of the program
    fake_cm().verbs = fake().queue_pairs.at(0)->native.context;
    fake_cm().sgid = fake().gids.at(0).gid;
    EXPECT_EQ(doca_rdma_start_listen_to_port(server_->rdma, 7174), DOCA_SUCCESS);
    listener_ = fake_cm().latest;
  }
  ~DocaFakeRdmaTest() override {
    server_.reset();
    EXPECT_EQ(fake_cm().identifiers, 0);
  }

  /// A peer asks for a connection, which is accepted but not established yet.
  doca_rdma_connection* accept() {
    const std::size_t had = requests().size();
    fake_cm().latest = listener_;
    fake_cm().deliver(RDMA_CM_EVENT_CONNECT_REQUEST, peer_, 0, fake_cm().make_requested());
    EXPECT_TRUE(server_->until([&] { return requests().size() > had; }));
    return requests().empty() ? nullptr : requests().back();
  }
  void establish() {
    const int had = changes();
    fake_cm().deliver(RDMA_CM_EVENT_ESTABLISHED);
    ASSERT_TRUE(server_->until([&] { return changes() > had; }));
  }
  /// Disconnects, and waits for the end of its queue pair.
  void disconnect(doca_rdma_connection* connection) {
    const std::size_t had = fake().queue_pairs.size();
    ASSERT_EQ(doca_rdma_connection_disconnect(connection), DOCA_SUCCESS);
    ASSERT_TRUE(server_->until([&] { return fake().queue_pairs.size() < had; }));
  }
  static auto disconnects() {
    return std::count(fake_cm().calls.begin(), fake_cm().calls.end(), "rdma_disconnect");
  }
  /// The oldest receive completes.
  static void finish_receive(std::uint32_t qp_num, ibv_wc_status status) {
    ibv_wc told{};
    told.wr_id = fake().shared_receives.front().send.wr_id;
    fake().shared_receives.pop_front();
    told.status = status;
    told.opcode = IBV_WC_RECV;
    told.qp_num = qp_num;
    fake().completions.push_back(told);
  }

  static std::vector<doca_rdma_connection*>& requests() {
    static std::vector<doca_rdma_connection*> all;
    return all;
  }
  static void on_request(doca_rdma_connection* connection, doca_data) {
    EXPECT_EQ(doca_rdma_connection_accept(connection, nullptr, 0), DOCA_SUCCESS);
    requests().push_back(connection);
  }
  /// The calls of on_change().
  static int& changes() {
    static int count = 0;
    return count;
  }
  static void on_change(doca_rdma_connection*, doca_data, doca_data) { ++changes(); }

  std::unique_ptr<Peer> server_;
  Bytes peer_;
  rdma_cm_id* listener_ = nullptr;
};

TEST_F(DocaFakeRdmaTest, ANumberThatIsGivenAgainIsOfTheNewConnection) {
  doca_rdma_connection* const first = accept();
  establish();
  const std::uint32_t number = fake().queue_pairs.back()->native.qp_num;
  doca_rdma_task_send* kept = nullptr;  // which keeps the connection after its end
  ASSERT_EQ(doca_rdma_task_send_allocate_init(server_->rdma, first, nullptr, {}, &kept),
            DOCA_SUCCESS);
  disconnect(first);
  fake().first_number = number - static_cast<std::uint32_t>(fake().queue_pairs.size());
  doca_rdma_connection* const second = accept();
  establish();
  ASSERT_NE(first, second);
  ASSERT_EQ(fake().queue_pairs.back()->native.qp_num, number);
  ASSERT_EQ(server_->receive(nullptr), DOCA_SUCCESS);
  finish_receive(number, IBV_WC_SUCCESS);
  ASSERT_TRUE(server_->ends(1));
  EXPECT_EQ(server_->ended[0].connection, second);
  // It is not forgotten with the first connection, which the next export drops.
  doca_task_free(doca_rdma_task_send_as_task(kept));
  const void* details = nullptr;
  std::size_t size = 0;
  doca_rdma_connection* third = nullptr;
  EXPECT_EQ(doca_rdma_export(server_->rdma, &details, &size, &third), DOCA_ERROR_FULL);
  ASSERT_EQ(server_->receive(nullptr), DOCA_SUCCESS);
  finish_receive(number, IBV_WC_SUCCESS);
  ASSERT_TRUE(server_->ends(2));
  EXPECT_EQ(server_->ended[1].connection, second);
}

TEST_F(DocaFakeRdmaTest, AReceiveOfAConnectionThatIsGoneStopsNothing) {
  accept();
  establish();
  ASSERT_EQ(server_->receive(nullptr), DOCA_SUCCESS);
  ASSERT_EQ(server_->receive(nullptr), DOCA_SUCCESS);
  finish_receive(fake().first_number - 1, IBV_WC_WR_FLUSH_ERR);
  ASSERT_TRUE(server_->ends(1));
  EXPECT_EQ(server_->ended[0].status, DOCA_ERROR_SHUTDOWN);
  EXPECT_EQ(server_->state(), DOCA_CTX_STATE_RUNNING);
  // One of a connection that is there is a failure of the context.
  finish_receive(fake().queue_pairs.back()->native.qp_num, IBV_WC_LOC_LEN_ERR);
  ASSERT_TRUE(server_->ends(2));
  EXPECT_EQ(server_->ended[1].status, DOCA_ERROR_IO_FAILED);
  EXPECT_NE(server_->state(), DOCA_CTX_STATE_RUNNING);
}

TEST_F(DocaFakeRdmaTest, APeerIsToldOfAConnectionThatWasDisconnectedTooEarly) {
  doca_rdma_connection* const made = accept();
  disconnect(made);
  const auto had = disconnects();
  fake_cm().deliver(RDMA_CM_EVENT_ESTABLISHED);
  ASSERT_TRUE(server_->until([&] { return disconnects() != had; }));
  EXPECT_EQ(disconnects(), had + 1);
}

TEST_F(DocaFakeDeviceTest, AnRdmaContextThatAGraphHasANodeOfIsNotConfigured) {
  doca_pe* pe = nullptr;
  doca_rdma* rdma = nullptr;
  doca_graph* graph = nullptr;
  doca_graph_node* node = nullptr;
  ASSERT_EQ(doca_pe_create(&pe), DOCA_SUCCESS);
  ASSERT_EQ(doca_rdma_create(dev_, &rdma), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_create(pe, &graph), DOCA_SUCCESS);
  ASSERT_EQ(doca_graph_node_create_from_ctx(graph, doca_rdma_as_ctx(rdma), &node), DOCA_SUCCESS);
  const auto ended = [](doca_rdma_task_send*, doca_data, doca_data) {};
  EXPECT_EQ(doca_rdma_task_send_set_conf(rdma, ended, ended, 1), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_rdma_destroy(rdma), DOCA_ERROR_IN_USE);
  EXPECT_EQ(doca_graph_destroy(graph), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_task_send_set_conf(rdma, ended, ended, 1), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_destroy(rdma), DOCA_SUCCESS);
  EXPECT_EQ(doca_pe_destroy(pe), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
