#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/doca/rdma_fixture.hpp"
#include "tests/support/child_process.hpp"

/// Contexts for RDMA over a real device, connected by librdmacm, and of two processes.
namespace offload::doca {
namespace {

constexpr std::uint16_t kPort = 13579;

/// The address of the device: that of the guest, or the one of this machine that is given.
std::string own_address() {
  const char* const address = std::getenv("RDMA_GUEST_ADDRESS");
  return address != nullptr ? address : "10.77.0.1";
}

/// A Peer with the callbacks of connections.
class CmPeer : public Peer {
 public:
  enum class Answer : std::uint8_t { accept, reject, later };

  explicit CmPeer(doca_dev* dev, std::uint16_t most = 2) : Peer(dev) {
    EXPECT_EQ(doca_rdma_set_max_num_connections(rdma, most), DOCA_SUCCESS);
    EXPECT_EQ(doca_rdma_set_connection_state_callbacks(rdma, on_request, on_established, on_failure,
                                                       on_disconnection),
              DOCA_SUCCESS);
    EXPECT_EQ(doca_ctx_start(ctx), DOCA_SUCCESS);
  }
  doca_error_t connect_to(const std::string& address, std::uint16_t port, std::uint64_t its_data) {
    doca_rdma_addr* addr = nullptr;
    EXPECT_EQ(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, address.c_str(), port, &addr),
              DOCA_SUCCESS);
    const doca_error_t result = doca_rdma_connect_to_addr(rdma, addr, {.u64 = its_data});
    EXPECT_EQ(doca_rdma_addr_destroy(addr), DOCA_SUCCESS);
    return result;
  }

  Answer answer = Answer::accept;
  std::vector<doca_rdma_connection*> requests, established, failed, disconnected;
  std::vector<std::uint64_t> data;  ///< of the connections in callbacks

 private:
  static CmPeer& of(doca_data ctx_data) {
    auto& self = *static_cast<CmPeer*>(static_cast<Peer*>(ctx_data.ptr));
    EXPECT_TRUE(self.in_progress) << "a callback outside doca_pe_progress()";
    return self;
  }
  static void on_request(doca_rdma_connection* connection, doca_data ctx_data) {
    CmPeer& self = of(ctx_data);
    self.requests.push_back(connection);
    if (self.answer == Answer::accept) {
      EXPECT_EQ(doca_rdma_connection_set_user_data(connection, {.u64 = 5}), DOCA_SUCCESS);
      EXPECT_EQ(doca_rdma_connection_accept(connection, nullptr, 0), DOCA_SUCCESS);
    } else if (self.answer == Answer::reject) {
      EXPECT_EQ(doca_rdma_connection_reject(connection), DOCA_SUCCESS);
    }
  }
  static void on_established(doca_rdma_connection* connection, doca_data user_data,
                             doca_data ctx_data) {
    of(ctx_data).established.push_back(connection);
    of(ctx_data).data.push_back(user_data.u64);
  }
  static void on_failure(doca_rdma_connection* connection, doca_data user_data,
                         doca_data ctx_data) {
    of(ctx_data).failed.push_back(connection);
    of(ctx_data).data.push_back(user_data.u64);
  }
  static void on_disconnection(doca_rdma_connection* connection, doca_data user_data,
                               doca_data ctx_data) {
    of(ctx_data).disconnected.push_back(connection);
    of(ctx_data).data.push_back(user_data.u64);
    EXPECT_EQ(doca_rdma_connection_disconnect(connection), DOCA_SUCCESS);
  }
};

class DocaRdmaCmTest : public testing::Test {
 protected:
  DocaRdmaCmTest() : dev_(open_rdma_device()) {}
  void SetUp() override {
    ASSERT_NE(dev_, nullptr) << "there is no RDMA device";
    server_ = std::make_unique<CmPeer>(dev_);
    client_ = std::make_unique<CmPeer>(dev_);
  }
  ~DocaRdmaCmTest() override {
    client_.reset();
    server_.reset();
    EXPECT_EQ(doca_dev_close(dev_), DOCA_SUCCESS);
  }
  void establish(std::uint64_t data = 6) {
    const std::size_t had = client_->established.size();
    ASSERT_EQ(client_->connect_to(own_address(), kPort, data), DOCA_SUCCESS);
    ASSERT_TRUE(client_->until(
        [&] { return client_->established.size() > had && server_->established.size() > had; },
        server_.get()));
  }

  doca_dev* dev_;
  std::unique_ptr<CmPeer> server_, client_;
};

TEST_F(DocaRdmaCmTest, ConnectsToAPortAndDisconnects) {
  ASSERT_EQ(doca_rdma_start_listen_to_port(server_->rdma, kPort), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_start_listen_to_port(server_->rdma, kPort), DOCA_ERROR_ALREADY_EXIST);
  EXPECT_EQ(doca_rdma_start_listen_to_port(client_->rdma, kPort), DOCA_ERROR_IN_USE);
  establish();
  EXPECT_EQ(client_->data, (std::vector<std::uint64_t>{6}));
  EXPECT_EQ(server_->data, (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(server_->established, server_->requests);
  EXPECT_EQ(doca_rdma_connection_accept(server_->established[0], nullptr, 0), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_connection_reject(server_->established[0]), DOCA_ERROR_BAD_STATE);

  ASSERT_EQ(server_->receive(server_->destination(0, 64)), DOCA_SUCCESS);
  ASSERT_EQ(client_->send(client_->established[0], client_->source(0, 20, 0x42)), DOCA_SUCCESS);
  ASSERT_TRUE(server_->ends(1, client_.get()));
  EXPECT_EQ(server_->ended[0].connection, server_->established[0]);
  EXPECT_EQ(server_->memory[19], 0x42);
  ASSERT_TRUE(client_->ends(1, server_.get()));

  // A task in flight fails at a disconnection, and the contexts go on.
  ASSERT_EQ(client_->send_unflushed(client_->established[0], client_->source(0, 20, 1)),
            DOCA_SUCCESS);
  ASSERT_EQ(doca_rdma_connection_disconnect(client_->established[0]), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_connection_disconnect(client_->established[0]), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(client_->ended.size(), 1U);
  ASSERT_TRUE(server_->until(
      [&] { return !server_->disconnected.empty() && client_->ended.size() == 2; }, client_.get()));
  EXPECT_EQ(client_->ended[1].status, DOCA_ERROR_SHUTDOWN);
  EXPECT_EQ(server_->disconnected, server_->established);
  EXPECT_TRUE(client_->disconnected.empty());
  EXPECT_EQ(server_->state(), DOCA_CTX_STATE_RUNNING);
  EXPECT_EQ(client_->state(), DOCA_CTX_STATE_RUNNING);

  // Its place is taken by others, more than may be there at a time.
  for (std::uint64_t i = 0; i < 4; ++i) {
    establish(i);
    ASSERT_EQ(doca_rdma_connection_disconnect(client_->established.back()), DOCA_SUCCESS);
    ASSERT_TRUE(
        server_->until([&] { return server_->disconnected.size() == i + 2; }, client_.get()));
  }
}

TEST_F(DocaRdmaCmTest, AServerHasSeveralConnectionsAndRejectsMore) {
  ASSERT_EQ(doca_rdma_start_listen_to_port(server_->rdma, kPort), DOCA_SUCCESS);
  establish(1);
  establish(2);
  EXPECT_EQ(client_->connect_to(own_address(), kPort, 3), DOCA_ERROR_FULL);
  CmPeer third(dev_);
  ASSERT_EQ(third.connect_to(own_address(), kPort, 3), DOCA_SUCCESS);
  ASSERT_TRUE(third.until([&] { return !third.failed.empty(); }, server_.get()));
  EXPECT_EQ(third.data, (std::vector<std::uint64_t>{3}));
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(server_->receive(nullptr), DOCA_SUCCESS);
    ASSERT_EQ(client_->send(client_->established[i], nullptr), DOCA_SUCCESS);
    ASSERT_TRUE(server_->ends(i + 1, client_.get()));
  }
  EXPECT_NE(server_->ended[0].connection, server_->ended[1].connection);
  // The end of a context disconnects its peers.
  ASSERT_NE(doca_ctx_stop(server_->ctx), DOCA_ERROR_BAD_STATE);
  ASSERT_TRUE(client_->until([&] { return client_->disconnected.size() == 2; }, server_.get()));
}

/// An mmap of many bytes, and a buffer of all of them.
class LongBuffer {
 public:
  static constexpr std::size_t kLength = std::size_t{32} * 1024 * 1024;

  LongBuffer(doca_dev* dev, doca_buf_inventory* inventory, bool is_source) {
    EXPECT_EQ(doca_mmap_create(&mmap_), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_set_memrange(mmap_, bytes_.data(), kLength), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_add_dev(mmap_, dev), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_start(mmap_), DOCA_SUCCESS);
    if (is_source) std::fill(bytes_.begin(), bytes_.end(), 1);
    const auto get =
        is_source ? &doca_buf_inventory_buf_get_by_data : &doca_buf_inventory_buf_get_by_addr;
    EXPECT_EQ(get(inventory, mmap_, bytes_.data(), kLength, &buf), DOCA_SUCCESS);
  }
  LongBuffer& operator=(LongBuffer&&) = delete;
  ~LongBuffer() {
    EXPECT_EQ(doca_buf_dec_refcount(buf, nullptr), DOCA_SUCCESS);
    EXPECT_EQ(doca_mmap_destroy(mmap_), DOCA_SUCCESS);
  }
  /// Returns whether the device has begun to write it.
  [[nodiscard]] bool has_begun() const {
    return static_cast<const volatile std::uint8_t&>(bytes_.front()) != 0;
  }

  doca_buf* buf = nullptr;

 private:
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(kLength);
  doca_mmap* mmap_ = nullptr;
};

TEST_F(DocaRdmaCmTest, APeerThatIsDisconnectedInAMessageEndsNoOther) {
  ASSERT_EQ(doca_rdma_start_listen_to_port(server_->rdma, kPort), DOCA_SUCCESS);
  CmPeer second(dev_);
  const LongBuffer from(dev_, second.inventory, true);
  const LongBuffer into(dev_, server_->inventory, false);
  establish(1);
  ASSERT_EQ(second.connect_to(own_address(), kPort, 2), DOCA_SUCCESS);
  ASSERT_TRUE(second.until(
      [&] { return second.established.size() == 1 && server_->established.size() == 2; },
      server_.get()));
  ASSERT_EQ(server_->receive(into.buf, 1), DOCA_SUCCESS);
  ASSERT_EQ(server_->receive(server_->destination(0, 64), 2), DOCA_SUCCESS);
  ASSERT_EQ(second.send(second.established[0], from.buf), DOCA_SUCCESS);
  ASSERT_TRUE(second.until([&] { return into.has_begun(); }));
  ASSERT_EQ(doca_rdma_connection_disconnect(server_->established[1]), DOCA_SUCCESS);
  ASSERT_TRUE(server_->ends(1));
  EXPECT_EQ(server_->ended[0].user_data, 1U);
  EXPECT_EQ(server_->ended[0].status, DOCA_ERROR_SHUTDOWN);
  EXPECT_EQ(server_->ended[0].connection, nullptr);
  EXPECT_EQ(server_->state(), DOCA_CTX_STATE_RUNNING);
  // The other one sends on.
  ASSERT_EQ(client_->send(client_->established[0], client_->source(0, 20, 0x42)), DOCA_SUCCESS);
  ASSERT_TRUE(server_->ends(2, client_.get()));
  EXPECT_EQ(server_->ended[1].status, DOCA_SUCCESS);
  EXPECT_EQ(server_->ended[1].connection, server_->established[0]);
  EXPECT_EQ(server_->memory[19], 0x42);
  EXPECT_TRUE(client_->disconnected.empty());
  ASSERT_TRUE(second.ends(1, server_.get()));
}

TEST_F(DocaRdmaCmTest, ARequestIsAnsweredLaterOrRejected) {
  ASSERT_EQ(doca_rdma_start_listen_to_port(server_->rdma, kPort), DOCA_SUCCESS);
  server_->answer = CmPeer::Answer::later;
  ASSERT_EQ(client_->connect_to(own_address(), kPort, 1), DOCA_SUCCESS);
  ASSERT_TRUE(client_->until([&] { return !server_->requests.empty(); }, server_.get()));
  EXPECT_EQ(doca_rdma_connection_disconnect(server_->requests[0]), DOCA_ERROR_BAD_STATE);
  char data[12] = {};
  ASSERT_EQ(doca_rdma_connection_accept(server_->requests[0], nullptr, 1),
            DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_rdma_connection_accept(server_->requests[0], data, 11), DOCA_SUCCESS);
  ASSERT_TRUE(client_->until([&] { return !client_->established.empty(); }, server_.get()));
  server_->answer = CmPeer::Answer::reject;
  ASSERT_EQ(client_->connect_to(own_address(), kPort, 2), DOCA_SUCCESS);
  ASSERT_TRUE(client_->until([&] { return client_->failed.size() == 1; }, server_.get()));
  // There is no listener any more.
  ASSERT_EQ(doca_rdma_stop_listen_to_port(server_->rdma, kPort), DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_stop_listen_to_port(server_->rdma, kPort), DOCA_ERROR_NOT_FOUND);
  server_->turn();
  ASSERT_EQ(client_->connect_to(own_address(), kPort, 3), DOCA_SUCCESS);
  ASSERT_TRUE(client_->until([&] { return client_->failed.size() == 2; }, server_.get()));
  EXPECT_EQ(server_->requests.size(), 2U);
  // Private data that is too long.
  ASSERT_EQ(doca_rdma_start_listen_to_port(server_->rdma, kPort), DOCA_SUCCESS);
  server_->answer = CmPeer::Answer::later;
  ASSERT_EQ(client_->connect_to(own_address(), kPort, 4), DOCA_SUCCESS);
  ASSERT_TRUE(client_->until([&] { return server_->requests.size() == 3; }, server_.get()));
  EXPECT_EQ(doca_rdma_connection_accept(server_->requests[2], data, 12), DOCA_ERROR_INVALID_VALUE);
  ASSERT_TRUE(client_->until([&] { return client_->failed.size() == 3; }, server_.get()));
}

TEST_F(DocaRdmaCmTest, RefusesCallsThatTheStateDoesNotAllow) {
  const Peer plain(dev_);
  EXPECT_EQ(doca_rdma_start_listen_to_port(plain.rdma, kPort), DOCA_ERROR_BAD_STATE);
  doca_rdma_addr* addr = nullptr;
  ASSERT_EQ(doca_rdma_addr_create(DOCA_RDMA_ADDR_TYPE_IPv4, "10.0.0.1", kPort, &addr),
            DOCA_SUCCESS);
  EXPECT_EQ(doca_rdma_connect_to_addr(plain.rdma, addr, {}), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_rdma_addr_destroy(addr), DOCA_SUCCESS);
  doca_rdma_connection* made = nullptr;
  static_cast<void>(client_->make_connection(made));
  EXPECT_EQ(doca_rdma_connection_disconnect(made), DOCA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(doca_rdma_connection_accept(made, nullptr, 0), DOCA_ERROR_BAD_STATE);
}

/// Writes and reads of a whole message between two processes.
void give(int fd, const Bytes& bytes) {
  ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}
Bytes take(int fd) {
  Bytes bytes(65536);
  const ssize_t size = ::read(fd, bytes.data(), bytes.size());
  EXPECT_GT(size, 0) << "the other process has ended";
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return bytes;
}

/// The other process: exports its memory and connection, and receives one message.
int serve(int socket) {
  doca_dev* const dev = open_rdma_device();
  if (dev == nullptr) return 2;
  {
    Peer peer(dev);
    EXPECT_EQ(doca_ctx_start(peer.ctx), DOCA_SUCCESS);
    doca_rdma_connection* made = nullptr;
    EXPECT_EQ(peer.receive(peer.destination(4096, 64)), DOCA_SUCCESS);
    give(socket, peer.make_connection(made));
    give(socket, peer.exported_memory());
    EXPECT_EQ(peer.connect(take(socket), made), DOCA_SUCCESS);
    give(socket, Bytes(1));
    EXPECT_TRUE(peer.ends(1));
    EXPECT_EQ(peer.memory[100], 0x5a);   // what was written before the message
    EXPECT_EQ(peer.memory[4096], 0x5b);  // the message
  }
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
  return testing::Test::HasFailure() ? 1 : 0;
}

TEST(DocaRdmaProcessTest, TwoProcessesConnectByBytes) {
  support::ChildProcess child(serve, std::chrono::seconds(30));
  doca_dev* const dev = open_rdma_device();
  ASSERT_NE(dev, nullptr);
  {
    Peer peer(dev);
    ASSERT_EQ(doca_ctx_start(peer.ctx), DOCA_SUCCESS);
    doca_rdma_connection* made = nullptr;
    const Bytes own = peer.make_connection(made);
    ASSERT_EQ(peer.connect(take(child.socket()), made), DOCA_SUCCESS);
    ASSERT_EQ(peer.import(take(child.socket())), DOCA_SUCCESS);
    give(child.socket(), own);
    take(child.socket());  // the other one is connected
    ASSERT_EQ(peer.write(made, peer.source(0, 64, 0x5a), peer.far(100, 64, false)), DOCA_SUCCESS);
    ASSERT_EQ(peer.send(made, peer.source(64, 64, 0x5b)), DOCA_SUCCESS);
    ASSERT_TRUE(peer.ends(2));
    for (const EndedTask& end : peer.ended) EXPECT_EQ(end.status, DOCA_SUCCESS);
    const int status = child.wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(doca_dev_close(dev), DOCA_SUCCESS);
}

}  // namespace
}  // namespace offload::doca
