#include <arpa/inet.h>
#include <doca_comch.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "tests/doca/comch_fixture.hpp"

namespace offload::doca {
namespace {

class ComchPeerTest : public ComchTest {
 protected:
  ~ComchPeerTest() override {
    ::unsetenv("OFFLOAD_DOCA_COMCH_KEY_FILE");
    for (const std::string& path : files_) ::unlink(path.c_str());
  }
  /// Makes a file with a key that `seed` decides, and names it in the environment.
  void use_key(unsigned seed) {
    files_.push_back(std::string(folder_) + "/key" + std::to_string(seed));
    std::string key;
    for (unsigned i = 0; i < 64; ++i) key += static_cast<char>((seed + i * i * 7 + i / 3) * 31);
    std::ofstream(files_.back(), std::ios::binary) << key;
    ::chmod(files_.back().c_str(), 0600);
    ::setenv("OFFLOAD_DOCA_COMCH_KEY_FILE", files_.back().c_str(), 1);
  }
  /// Returns a port of the loopback address that no program uses now.
  static std::uint16_t free_port() {
    const core::Fd probe(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(probe.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }
  /// Connects to the server's socket as no client of the library does.
  core::Fd connect_by_hand() {
    core::Fd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path_.data(), path_.size());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    return fd;
  }
  void start_server() {
    path_ = std::string(folder_) + "/own";
    ::setenv("OFFLOAD_DOCA_COMCH", ("b1:00.0=unix:" + path_).c_str(), 1);
    ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  }
  static void send_bytes(const core::Fd& fd, const std::string& bytes) {
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// A frame with a head of four numbers.
  static std::string frame(std::uint32_t kind, std::uint32_t length, const std::string& payload) {
    const std::array<std::uint32_t, 4> head{kind, length, 1, 0};
    return std::string(reinterpret_cast<const char*>(head.data()), sizeof head) + payload;
  }
  static std::string hello(std::uint32_t receive_queue = 8) {
    const std::array<std::uint32_t, 6> own{1, 4080, receive_queue, 0, 0, 0};
    const std::string payload = std::string(reinterpret_cast<const char*>(own.data()), sizeof own);
    const std::string text = payload + kName;
    return frame(1, static_cast<std::uint32_t>(text.size()), text);
  }
  /// Connects as a client that does all right.
  core::Fd connect_well(std::uint32_t receive_queue = 8) {
    core::Fd client = connect_by_hand();
    send_bytes(client, hello(receive_queue));
    EXPECT_TRUE(run_until([&] { return server_side_.connects == 1; }));
    return client;
  }
  void connect_over_network() {
    const std::string address = "b1:00.0=tcp:127.0.0.1:" + std::to_string(free_port());
    ::setenv("OFFLOAD_DOCA_COMCH", address.c_str(), 1);
    use_key(1);
    connect();
  }
  /// Returns whether the server closes the connection; what it sends before is read.
  bool is_closed(const core::Fd& fd) {
    std::array<char, 256> bytes{};
    return run_until([&] {
      const ssize_t count = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      return count == 0 || (count < 0 && errno != EAGAIN);
    });
  }

  std::string path_;
  std::vector<std::string> files_;
};

TEST_F(ComchPeerTest, OverANetworkBothSidesNeedTheKey) {
  connect_over_network();
  const std::string text(4080, 't');
  ASSERT_EQ(send_from_client(text), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return server_side_.messages.size() == 1; }));
  EXPECT_EQ(server_side_.messages[0], text);
  use_key(2);
  Side other;
  others_ = [&] { other.turn(); };
  doca_comch_client* const client = make_client(other, kName);
  ASSERT_EQ(doca_ctx_start(other.ctx), DOCA_ERROR_IN_PROGRESS);
  ASSERT_TRUE(run_until([&] { return other.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(other.states,
            (std::vector{DOCA_CTX_STATE_STARTING, DOCA_CTX_STATE_STOPPING, DOCA_CTX_STATE_IDLE}));
  EXPECT_EQ(server_side_.connects, 1);
  others_ = nullptr;
  EXPECT_EQ(doca_comch_client_destroy(client), DOCA_SUCCESS);
}

TEST_F(ComchPeerTest, ADisconnectionOverANetworkDoesNotEndTheProgram) {
  const auto former = std::signal(SIGPIPE, SIG_DFL);  // whatever this program has inherited
  connect_over_network();
  ASSERT_EQ(doca_comch_server_disconnect(server_, server_side_.connection), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return client_side_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(server_side_.state(), DOCA_CTX_STATE_RUNNING);
  std::signal(SIGPIPE, former);
}

TEST_F(ComchPeerTest, MessagesOfAClientThatIsGoneAreReceived) {
  start_server();
  core::Fd client = connect_well();
  for (int i = 0; i < 64; ++i) send_bytes(client, frame(5, 2, "ok"));  // the receive queue
  client.reset();
  ASSERT_TRUE(run_until([&] { return server_side_.disconnects == 1; }));
  EXPECT_EQ(server_side_.messages.size(), 64U) << "after half of them credit is sent";
}

TEST_F(ComchPeerTest, ASendWaitsUntilTheSystemHasAllBytes) {
  start_server();
  const core::Fd client = connect_well(8192);
  const std::string text(4080, 'm');
  std::size_t submitted = 0;
  for (int i = 0; i < 1000; ++i) {
    submitted += send_from_server(text) == DOCA_SUCCESS ? 1U : 0U;
    server_side_.turn();
  }
  EXPECT_EQ(submitted - server_side_.sent.size(), kTasks) << "the client reads nothing";
  std::vector<char> bytes(std::size_t{64} * 1024);
  std::size_t received = 0;
  const std::size_t expected = sizeof(std::uint32_t) * (4 + 6) + submitted * (16 + text.size());
  ASSERT_TRUE(run_until([&] {
    const ssize_t count = ::recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    received += count > 0 ? static_cast<std::size_t>(count) : 0;
    return received == expected && server_side_.sent.size() == submitted;
  }));
  EXPECT_EQ(server_side_.sent, std::vector<doca_error_t>(submitted, DOCA_SUCCESS));
}

TEST_F(ComchPeerTest, AClientThatSendsButDoesNotReadIsDisconnected) {
  ASSERT_EQ(doca_comch_server_set_recv_queue_size(server_, 1), DOCA_SUCCESS);
  start_server();
  const core::Fd client = connect_well();
  std::string flood;
  for (int i = 0; i < 1024; ++i) flood += frame(5, 0, "");  // each is answered by credit
  std::size_t sent = 0;
  EXPECT_TRUE(run_until([&] {
    const ssize_t count = ::send(client.get(), &flood[sent % flood.size()],
                                 flood.size() - sent % flood.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    sent += count > 0 ? static_cast<std::size_t>(count) : 0;
    return server_side_.disconnects == 1;
  }));
  EXPECT_LT(sent, std::size_t{16} * 1024 * 1024);
}

TEST_F(ComchPeerTest, APeerThatSendsNonsenseIsDisconnected) {
  start_server();
  const core::Fd stranger = connect_by_hand();
  send_bytes(stranger, std::string(64, '\xff'));
  EXPECT_TRUE(is_closed(stranger));
  const core::Fd short_hello = connect_by_hand();
  send_bytes(short_hello, frame(1, 4, "abcd"));
  EXPECT_TRUE(is_closed(short_hello));
  const core::Fd attached = connect_by_hand();
  send_bytes(attached, frame(3, 16, std::string(16, 'a')));
  EXPECT_TRUE(is_closed(attached)) << "there is no such connection";
  EXPECT_EQ(server_side_.connects, 0);
  // A client that first does all right.
  for (const std::string& wrong : {frame(77, 0, ""), frame(5, 5000, ""),
                                   frame(6, 0, "").substr(0, 8) + std::string(8, '\xff')}) {
    const int before = server_side_.disconnects;
    const core::Fd client = connect_by_hand();
    send_bytes(client, hello());
    ASSERT_TRUE(run_until([&] { return server_side_.connects == before + 1; }));
    send_bytes(client, frame(5, 2, "ok") + wrong);
    EXPECT_TRUE(is_closed(client));
    EXPECT_EQ(server_side_.disconnects, before + 1);
    EXPECT_EQ(server_side_.messages.back(), "ok");
  }
}

}  // namespace
}  // namespace offload::doca
