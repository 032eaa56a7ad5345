#include <arpa/inet.h>
#include <dlfcn.h>
#include <doca_comch.h>
#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/fd.hpp"
#include "tests/doca/comch/comch_data_fixture.hpp"
#include "tests/net/free_port.hpp"

namespace {

int resolved = 0;  // calls of getaddrinfo() in this program

}  // namespace

/// Counts the calls of the library, too: the program's symbol comes before the C library's.
extern "C" [[gnu::visibility("default")]] int getaddrinfo(const char* host, const char* service,
                                                          const addrinfo* hints, addrinfo** list) {
  ++resolved;
  const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(host, service, hints, list);
}

namespace offload::doca {
namespace {

class ComchPeerTest : public ComchDataTest {
 protected:
  static constexpr std::uint32_t kMostConsumers = 256;  // of a side of a connection

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
  /// Connects to the server's socket as no client of the library does.
  core::Fd connect_by_hand() {
    core::Fd fd = try_connect(0);
    EXPECT_TRUE(fd.valid());
    return fd;
  }
  /// Returns no socket if the server's queue is full, and `flags` is SOCK_NONBLOCK.
  core::Fd try_connect(int flags) {
    core::Fd fd(::socket(AF_UNIX, SOCK_STREAM | flags, 0));
    const sockaddr_un name = socket_name();
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) fd.reset();
    return fd;
  }
  [[nodiscard]] sockaddr_un socket_name() const {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path_.data(), path_.size());
    return name;
  }
  /// Returns whether the server has nothing to do after some turns.
  [[nodiscard]] bool pauses() const {
    for (int i = 0; i < 32; ++i) doca_pe_progress(server_side_.pe);  // some of them take events
    for (int i = 0; i < 10000; ++i) {
      if (doca_pe_progress(server_side_.pe) == 0) return true;
    }
    return false;
  }
  /// Names the address of a socket of the test in the environment.
  void use_own_path() {
    path_ = std::string(folder_) + "/own";
    ::setenv("OFFLOAD_DOCA_COMCH", ("b1:00.0=unix:" + path_).c_str(), 1);
  }
  void start_server() {
    use_own_path();
    ASSERT_EQ(doca_ctx_start(server_side_.ctx), DOCA_SUCCESS);
  }
  void start_network_server() {
    use_key(1);
    doca_error_t result = DOCA_ERROR_IN_USE;  // by a program that has taken the port meanwhile
    for (int i = 0; i < 10 && result == DOCA_ERROR_IN_USE; ++i) {
      port_ = net::test::free_port();
      const std::string address = "b1:00.0=tcp:127.0.0.1:" + std::to_string(port_);
      ::setenv("OFFLOAD_DOCA_COMCH", address.c_str(), 1);
      result = doca_ctx_start(server_side_.ctx);
    }
    ASSERT_EQ(result, DOCA_SUCCESS);
  }
  static void send_bytes(const core::Fd& fd, const std::string& bytes) {
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// A frame with a head of four numbers.
  static std::string frame(std::uint32_t kind, std::uint32_t length, const std::string& payload,
                           std::uint32_t first = 1) {
    const std::array<std::uint32_t, 4> head{kind, length, first, 0};
    return std::string(reinterpret_cast<const char*>(head.data()), sizeof head) + payload;
  }
  static std::string introduction(std::uint32_t receive_queue = 8) {
    const std::array<std::uint32_t, 6> own{1, 4080, receive_queue, 0, 0, 0};
    return std::string(reinterpret_cast<const char*>(own.data()), sizeof own);
  }
  static std::string hello(std::uint32_t receive_queue = 8) {
    const std::string text = introduction(receive_queue) + kName;
    return frame(1, static_cast<std::uint32_t>(text.size()), text);
  }
  /// Receives bytes, for which all get turns.
  std::string receive_bytes(const core::Fd& fd, std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t received = 0;
    EXPECT_TRUE(run_until([&] {
      const ssize_t more = ::recv(fd.get(), &bytes[received], count - received, MSG_DONTWAIT);
      received += more > 0 ? static_cast<std::size_t>(more) : 0;
      return received == count;
    }));
    return bytes;
  }
  /// Connects as a client of the library does.
  core::Fd greet_by_hand() {
    core::Fd fd = connect_by_hand();
    send_bytes(fd, hello());
    token_ = receive_bytes(fd, 40).substr(32);  // behind the rest of the introduction
    return fd;
  }
  /// Opens the stream of a consumer of the client that greet_by_hand() is.
  core::Fd attach_by_hand(std::uint32_t consumer) {
    core::Fd fd = connect_by_hand();
    const std::string id(reinterpret_cast<const char*>(&consumer), sizeof consumer);
    send_bytes(fd, frame(3, 16, token_ + id + std::string(4, '\0')));
    return fd;
  }
  /// Greets and attaches a consumer, for which there is a producer then.
  void start_producer() {
    start_server();
    by_hand_ = greet_by_hand();
    stream_ = attach_by_hand(1);
    ASSERT_EQ(receive_bytes(stream_, 16).substr(0, 1), "\4");
    ASSERT_EQ(server_side_.new_consumers, std::vector{1U});
    producer_ = make_producer(sender_, server_side_.connection);
    ASSERT_EQ(doca_ctx_start(sender_.ctx), DOCA_SUCCESS);
    id_ = 1;
  }
  /// Connects as a client that does all right.
  core::Fd connect_well(std::uint32_t receive_queue = 8) {
    core::Fd client = connect_by_hand();
    send_bytes(client, hello(receive_queue));
    EXPECT_TRUE(run_until([&] { return server_side_.connects == 1; }));
    return client;
  }
  void connect_over_network() {
    start_network_server();
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
  std::uint16_t port_ = 0;
  std::string token_;
  core::Fd by_hand_;  ///< a client
  core::Fd stream_;   ///< its consumer
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

/// With a consumer of the server, or of the client.
class ComchReachTest : public ComchPeerTest, public testing::WithParamInterface<bool> {
 protected:
  void start_consumer() {
    connect();
    consumer_ = make_consumer(receiver_, (GetParam() ? server_side_ : client_side_).connection);
    ASSERT_EQ(doca_ctx_start(receiver_.ctx), DOCA_ERROR_IN_PROGRESS);
  }
};

INSTANTIATE_TEST_SUITE_P(ToServerAndToClient, ComchReachTest, testing::Bool());

TEST_P(ComchReachTest, OverANetworkTheHostIsResolvedInTheStartOnly) {
  start_network_server();
  resolved = 0;
  start(GetParam());
  EXPECT_EQ(resolved, 1);
  ASSERT_EQ(post(to_.empty(0, 100)), DOCA_SUCCESS);
  send_text("hello");
  ASSERT_TRUE(run_until([&] { return receiver_.texts.size() == 1; }));
  EXPECT_EQ(receiver_.texts[0], "hello");
}

TEST_P(ComchReachTest, AConsumerWaitsForRoomInTheQueueOfTheServersSocket) {
  start_server();
  start_consumer();
  server_side_.turn();  // the server tells the client of its consumer
  std::vector<core::Fd> others;
  for (core::Fd fd; (fd = try_connect(SOCK_NONBLOCK)).valid();) others.push_back(std::move(fd));
  for (int i = 0; i < 100; ++i) {
    client_side_.turn();
    receiver_.turn();
  }
  EXPECT_EQ(client_side_.state(), DOCA_CTX_STATE_RUNNING);
  EXPECT_EQ(receiver_.state(), DOCA_CTX_STATE_STARTING);
  others.clear();
  EXPECT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_RUNNING; }));
}

TEST_P(ComchReachTest, TheStartOfAConsumerThatCannotBeReachedFails) {
  start_server();
  start_consumer();
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_TRUE(run_until([&] { return receiver_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(client_side_.state(), DOCA_CTX_STATE_RUNNING);
  EXPECT_EQ(server_side_.disconnects, 0);
}

TEST_F(ComchPeerTest, TheTimeOfAStartBeginsWithItsFirstTurn) {
  start_server();
  ASSERT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));  // longer than a start may take
  EXPECT_TRUE(run_until([&] { return client_side_.state() != DOCA_CTX_STATE_STARTING; }));
  EXPECT_EQ(client_side_.state(), DOCA_CTX_STATE_RUNNING);
}

TEST_F(ComchPeerTest, AStreamOfNoConnectionIsRefused) {
  start_server();
  by_hand_ = greet_by_hand();
  token_[0] = static_cast<char>(token_[0] ^ 1);
  EXPECT_TRUE(is_closed(attach_by_hand(1)));
  EXPECT_TRUE(server_side_.new_consumers.empty());
}

TEST_F(ComchPeerTest, ManySilentStreamsDoNotKeepAServerBusy) {
  start_server();
  std::vector<core::Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect_by_hand());
  EXPECT_TRUE(pauses());
}

TEST_F(ComchPeerTest, ManySilentStreamsDoNotKeepOutAClient) {
  start_network_server();
  std::vector<core::Fd> silent;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port_);
  for (int i = 0; i < 128; ++i) {
    silent.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    const int status =
        ::connect(silent.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    EXPECT_TRUE(status == 0 || errno == EINPROGRESS);
  }
  connect();
}

TEST_F(ComchPeerTest, WithoutDescriptorsAServerAcceptsLater) {
  start_server();
  ASSERT_TRUE(pauses());
  const core::Fd client = connect_by_hand();
  send_bytes(client, hello());
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{3, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool has_paused = pauses();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(has_paused);
  EXPECT_EQ(server_side_.connects, 0);
  EXPECT_TRUE(run_until([&] { return server_side_.connects == 1; }));
}

TEST_F(ComchPeerTest, AConsumerThatPostsWithoutEndIsReadInParts) {
  start_producer();
  std::string frames;
  for (int i = 0; i < 256; ++i) frames += frame(9, 0, "");
  std::size_t sent = 0;
  const auto fill = [&] {
    const std::size_t before = sent;
    for (ssize_t count = 1; count > 0;) {
      const std::size_t part = sent % 16;
      count = ::send(stream_.get(), &frames[part], frames.size() - part, MSG_DONTWAIT);
      sent += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    return sent - before;
  };
  const std::size_t room = fill();
  ASSERT_EQ(send(from_.filled(0, "x")), DOCA_SUCCESS);
  EXPECT_LT(fill(), room * 3 / 4);
}

TEST_F(ComchPeerTest, AConsumerWhoseProcessIsGoneIsNotConnected) {
  start_producer();
  stream_.reset();
  EXPECT_EQ(send(from_.filled(0, "x")), DOCA_ERROR_NOT_CONNECTED);
}

TEST_F(ComchPeerTest, AProducersStopDoesNotWaitForAConsumerThatDoesNotRead) {
  start_producer();
  send_bytes(stream_, frame(9, 0, "", kMemory));
  ASSERT_EQ(send(from_.filled(0, std::string(kMemory, 'x'))), DOCA_SUCCESS);
  EXPECT_EQ(doca_ctx_stop(sender_.ctx), DOCA_ERROR_IN_PROGRESS);
  EXPECT_TRUE(
      run_until([&] { return sender_.state() == DOCA_CTX_STATE_IDLE; }, std::chrono::seconds(5)));
  EXPECT_EQ(sender_.results, std::vector{DOCA_ERROR_CONNECTION_RESET});
}

TEST_F(ComchPeerTest, TheNumberOfAClientsConsumersIsLimited) {
  start_server();
  const core::Fd client = greet_by_hand();
  std::vector<core::Fd> streams;
  for (std::uint32_t id = 1; id <= kMostConsumers; ++id) {
    streams.push_back(attach_by_hand(id));
    ASSERT_TRUE(run_until([&] { return server_side_.new_consumers.size() == id; }));
  }
  EXPECT_TRUE(is_closed(attach_by_hand(kMostConsumers + 1)));
  EXPECT_EQ(server_side_.new_consumers.size(), kMostConsumers);
  EXPECT_EQ(server_side_.disconnects, 0);
}

TEST_F(ComchPeerTest, TheNumberOfAServersConsumersIsLimited) {
  use_own_path();
  files_.push_back(path_);
  const core::Fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  const sockaddr_un name = socket_name();
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(listener.get(), 2 * kMostConsumers), 0);
  ASSERT_EQ(doca_ctx_start(client_side_.ctx), DOCA_ERROR_IN_PROGRESS);
  client_side_.turn();
  pollfd waiting{listener.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
  const core::Fd server(::accept(listener.get(), nullptr, nullptr));
  receive_bytes(server, hello().size());
  send_bytes(server, frame(2, 24, introduction()));
  std::string frames;
  for (std::uint32_t id = 1; id <= kMostConsumers + 1; ++id) frames += frame(7, 0, "", id);
  send_bytes(server, frames);
  EXPECT_EQ(receive_bytes(server, 16), frame(11, 0, "", kMostConsumers + 1));
  EXPECT_EQ(client_side_.new_consumers.size(), kMostConsumers);
}

TEST_F(ComchPeerTest, ADisconnectionOverANetworkDoesNotEndTheProgram) {
  const auto former = std::signal(SIGPIPE, SIG_DFL);  // whatever this program has inherited
  connect_over_network();
  ASSERT_EQ(doca_comch_server_disconnect(server_, server_side_.connection), DOCA_SUCCESS);
  ASSERT_TRUE(run_until([&] { return client_side_.state() == DOCA_CTX_STATE_IDLE; }));
  EXPECT_EQ(server_side_.state(), DOCA_CTX_STATE_RUNNING);
  EXPECT_EQ(std::signal(SIGPIPE, former), SIG_DFL) << "the library has changed it";
}

TEST_F(ComchPeerTest, MessagesOfAClientThatIsGoneAreReceived) {
  start_server();
  core::Fd client = connect_well();
  for (int i = 0; i < 64; ++i) send_bytes(client, frame(5, 2, "ok"));  // the receive queue
  client.reset();
  ASSERT_TRUE(run_until([&] { return server_side_.disconnects == 1; }));
  EXPECT_EQ(server_side_.messages.size(), 64U) << "after half of them credit is sent";
}

TEST_F(ComchPeerTest, OverANetworkTheyAreReceivedAfterASendThatFails) {
  connect_over_network();
  const std::string text = "ok";
  for (int i = 0; i < 4; ++i) ASSERT_EQ(send_from_client(text), DOCA_SUCCESS);
  EXPECT_NE(doca_ctx_stop(client_side_.ctx), DOCA_ERROR_INVALID_VALUE);
  while (client_side_.state() != DOCA_CTX_STATE_IDLE) client_side_.turn();
  for (int i = 0; i < 8; ++i) {  // the first ones tell the system that the client is gone
    ASSERT_EQ(send_from_server(text), DOCA_SUCCESS);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(run_until([&] { return server_side_.disconnects == 1; }));
  EXPECT_EQ(server_side_.messages, std::vector<std::string>(4, text));
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
