#include "comch/session/handshake.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "comch/transport/tcp/stream_connection.hpp"
#include "core/error.hpp"
#include "tests/comch/keys.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;
using protocol::Refusal;

/// Over which no transport proves the key.
Address address_with(std::shared_ptr<Keyring> keys) {
  return test::address_with("rdma:127.0.0.1:1", std::move(keys));
}

/// Both ends of a stream; the worker proves on a thread of its own.
class Handshake : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    server_ = std::make_unique<StreamControlConnection>(Stream(core::Fd(fds[0])), nullptr);
    worker_ = std::make_unique<StreamControlConnection>(Stream(core::Fd(fds[1])), nullptr);
  }
  /// What prove_as_worker throws; nothing if it goes through.
  std::future<std::optional<Error>> prove(std::shared_ptr<Keyring> keys) {
    return std::async(std::launch::async, [this, keys]() -> std::optional<Error> {
      try {
        prove_as_worker(*worker_, address_with(keys));
        return std::nullopt;
      } catch (const Error& error) {
        return error;
      }
    });
  }
  bool check(const std::shared_ptr<Keyring>& keys) {
    const auto challenge = send_challenge(*server_, kInstance);
    return take_proof(*server_, *keys, challenge, server_->await());
  }
  static constexpr protocol::InstanceId kInstance{std::byte{1}};
  const std::shared_ptr<Keyring> kKey = test::keyring_of(7);
  const std::shared_ptr<Keyring> kOther = test::keyring_of(8);

  std::unique_ptr<ControlConnection> server_;
  std::unique_ptr<ControlConnection> worker_;
};

TEST_F(Handshake, OneKey) {
  auto proven = prove(kKey);
  EXPECT_TRUE(check(kKey));
  EXPECT_FALSE(proven.get().has_value());
}

TEST_F(Handshake, AServerTakesTheNewKeyAndTheOldOne) {
  for (const auto& keys : {kKey, kOther}) {
    auto proven = prove(keys);
    EXPECT_TRUE(check(test::keyring_of(7, 8)));
    EXPECT_FALSE(proven.get().has_value());
  }
}

TEST_F(Handshake, AnInsecureWorkerProvesNothing) {
  Address address = address_with(kKey);
  address.insecure = true;
  prove_as_worker(*worker_, address);
  EXPECT_FALSE(server_->receive());
}

// Anybody could have said so: it is no reason to leave.
TEST_F(Handshake, ARefusalBeforeTheServersProofIsAReasonToTryAgain) {
  auto proven = prove(kOther);
  EXPECT_FALSE(check(kKey));
  server_->refuse(Refusal::bad_key, "not with that key");
  const auto error = proven.get();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::connection_aborted);
  EXPECT_NE(std::string(error->what()).find("not with that key"), std::string::npos);
}

TEST_F(Handshake, AProofIsForOneServerAndOneVersion) {
  for (int kind = 0; kind < 3; ++kind) {
    auto proven = prove(kKey);
    auto challenge = send_challenge(*server_, kInstance);
    const auto proof = server_->await();
    if (kind == 0) challenge.instance[15] ^= std::byte{1};
    if (kind == 1) ++challenge.version;
    auto changed = protocol::Proof::decode(proof.payload).value();
    if (kind == 2) ++changed.version;
    EXPECT_FALSE(take_proof(*server_, *kKey, challenge, {proof.id, changed.encode(), {}})) << kind;
    server_->refuse(Refusal::bad_key, "no");
    EXPECT_TRUE(proven.get().has_value());
  }
}

/// A connection as it is between two queue pairs: each end knows both.
class Described final : public ControlConnection {
 public:
  Described(ControlConnection& on, std::byte pair) : on_(&on), pair_(pair) {}
  std::optional<ControlMessage> receive() override { return on_->receive(); }
  [[nodiscard]] int fd() const noexcept override { return on_->fd(); }
  [[nodiscard]] std::string peer_name() const override { return "peer"; }
  [[nodiscard]] std::vector<std::byte> endpoints() const override { return {pair_}; }

 private:
  void send_frame(std::span<const std::byte> frame) override {
    const auto view = protocol::parse_frame(frame, protocol::kMaxControlLength);
    on_->send(view.id, view.payload);
  }
  ControlConnection* on_;
  std::byte pair_;
};

// Its two connections have queue pairs of their own.
TEST_F(Handshake, ARelayProvesNothing) {
  for (const bool relayed : {false, true}) {
    auto proven = std::async(std::launch::async, [&] {
      Described worker(*worker_, std::byte{1});
      return support::thrown_by([&] {
        prove_as_worker(worker, address_with(kKey));
        throw Error(ErrorCode::unexpected, "proven");
      });
    });
    Described server(*server_, relayed ? std::byte{2} : std::byte{1});
    const auto challenge = send_challenge(server, kInstance);
    const bool taken = take_proof(server, *kKey, challenge, server.await());
    EXPECT_EQ(taken, !relayed);
    if (relayed) server.refuse(Refusal::bad_key, "no");
    EXPECT_EQ(proven.get().code(), relayed ? ErrorCode::connection_aborted : ErrorCode::unexpected);
  }
}

// It lets anybody in, to hear what they say.
TEST_F(Handshake, AServerWithoutTheKey) {
  auto proven = prove(kKey);
  send_challenge(*server_, kInstance);
  server_->await();
  server_->send(MessageId::proof, protocol::Proof{}.encode());
  const auto error = proven.get();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::connection_aborted);
  EXPECT_EQ(std::string(error->what()), "the server does not have this worker's key");
  const auto told = server_->await();
  ASSERT_EQ(told.id, MessageId::error);
  EXPECT_EQ(protocol::parse_error(told.payload).code, Refusal::bad_key);
}

// It sends a worker's own proof back.
TEST_F(Handshake, AServerThatReflects) {
  auto proven = prove(kKey);
  send_challenge(*server_, kInstance);
  const auto proof = server_->await();
  server_->send(MessageId::proof, proof.payload);
  EXPECT_TRUE(proven.get().has_value());
}

TEST_F(Handshake, AProofIsGoodForOneChallenge) {
  auto first = prove(kKey);
  send_challenge(*server_, kInstance);
  const auto proof = server_->await();
  EXPECT_FALSE(take_proof(*server_, *kKey, protocol::Challenge{}, proof));
  server_->refuse(Refusal::bad_key, "an old proof");
  EXPECT_TRUE(first.get().has_value());
}

TEST_F(Handshake, AnythingElseProvesNothing) {
  const std::pair<MessageId, std::vector<std::byte>> answers[] = {
      {MessageId::hello, protocol::Hello{}.encode()},
      {MessageId::proof, {}},
      {MessageId::proof, std::vector<std::byte>(65)},
      {MessageId::proof, std::vector<std::byte>(66)},
      {MessageId::proof, std::vector<std::byte>(67)},
  };
  for (const auto& [id, payload] : answers) {
    const auto challenge = send_challenge(*server_, kInstance);
    EXPECT_FALSE(take_proof(*server_, *kKey, challenge, {id, payload, {}}));
  }
}

TEST_F(Handshake, AServerThatBeginsWithSomethingElse) {
  auto proven = prove(kKey);
  server_->send(MessageId::welcome, protocol::Welcome{}.encode());
  const auto error = proven.get();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::connection_aborted);
}

TEST_F(Handshake, AServerThatSaysNothing) {
  auto proven = prove(kKey);
  const auto error = proven.get();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::timed_out);
}

TEST_F(Handshake, AServerThatGoes) {
  auto proven = prove(kKey);
  server_.reset();
  const auto error = proven.get();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::connection_reset);
}

}  // namespace
}  // namespace offload::comch
