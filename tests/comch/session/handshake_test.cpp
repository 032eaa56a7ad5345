#include "comch/session/handshake.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "comch/transport/tcp/control.hpp"
#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;
using protocol::Refusal;

const Key kKey(32, std::byte{7});
const Key kOther(32, std::byte{8});

/// Both ends of a stream; the worker proves on a thread of its own.
class Handshake : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    server_ = make_stream_connection(core::Fd(fds[0]), nullptr);
    worker_ = make_stream_connection(core::Fd(fds[1]), nullptr);
  }
  /// What prove_as_worker throws; nothing if it goes through.
  std::future<std::optional<Error>> prove(const Key& key) {
    return std::async(std::launch::async, [this, &key]() -> std::optional<Error> {
      try {
        prove_as_worker(*worker_, key);
        return std::nullopt;
      } catch (const Error& error) {
        return error;
      }
    });
  }
  bool check(const Key& key) {
    const auto challenge = send_challenge(*server_);
    return take_proof(*server_, key, challenge, server_->await());
  }

  std::unique_ptr<ControlConnection> server_;
  std::unique_ptr<ControlConnection> worker_;
};

TEST_F(Handshake, OneKey) {
  for (const Key& key : {kKey, Key{}}) {
    auto proven = prove(key);
    EXPECT_TRUE(check(key));
    EXPECT_FALSE(proven.get().has_value());
  }
}

TEST_F(Handshake, AWorkerWithAnotherKeyOrNone) {
  for (const Key& key : {kOther, Key{}}) {
    auto proven = prove(key);
    EXPECT_FALSE(check(kKey));
    server_->refuse(Refusal::bad_key, "not with that key");
    const auto error = proven.get();
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::not_permitted);
    EXPECT_EQ(std::string(error->what()), "not with that key");
  }
}

// It lets anybody in, to hear what they say.
TEST_F(Handshake, AServerWithoutTheKey) {
  auto proven = prove(kKey);
  send_challenge(*server_);
  server_->await();
  server_->send(MessageId::proof, protocol::Proof{}.encode());
  const auto error = proven.get();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::not_permitted);
  EXPECT_EQ(std::string(error->what()), "the server does not have this worker's key");
  const auto told = server_->await();
  ASSERT_EQ(told.id, MessageId::error);
  EXPECT_EQ(protocol::parse_error(told.payload).code, Refusal::bad_key);
}

// It sends a worker's own proof back.
TEST_F(Handshake, AServerThatReflects) {
  auto proven = prove(kKey);
  send_challenge(*server_);
  const auto proof = server_->await();
  server_->send(MessageId::proof, proof.payload);
  EXPECT_TRUE(proven.get().has_value());
}

TEST_F(Handshake, AProofIsGoodForOneChallenge) {
  auto first = prove(kKey);
  send_challenge(*server_);
  const auto proof = server_->await();
  EXPECT_FALSE(take_proof(*server_, kKey, protocol::Nonce{}, proof));
  server_->refuse(Refusal::bad_key, "an old proof");
  EXPECT_TRUE(first.get().has_value());
}

TEST_F(Handshake, AnythingElseProvesNothing) {
  const std::pair<MessageId, std::vector<std::byte>> answers[] = {
      {MessageId::hello, protocol::Hello{}.encode()},
      {MessageId::proof, {}},
      {MessageId::proof, std::vector<std::byte>(63)},
      {MessageId::proof, std::vector<std::byte>(65)},
      {MessageId::proof, std::vector<std::byte>(64)},
  };
  for (const auto& [id, payload] : answers) {
    const auto challenge = send_challenge(*server_);
    EXPECT_FALSE(take_proof(*server_, kKey, challenge, {id, payload, {}}));
  }
}

TEST_F(Handshake, AServerThatBeginsWithSomethingElse) {
  auto proven = prove(kKey);
  server_->send(MessageId::welcome, protocol::Welcome{}.encode());
  const auto error = proven.get();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::bad_message);
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
