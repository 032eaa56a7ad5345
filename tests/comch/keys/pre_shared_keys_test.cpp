#include "comch/keys/pre_shared_keys.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "tests/comch/keys.hpp"

namespace offload::comch {
namespace {

using test::keyring_of;

/// The first bytes of a peer, before its TLS begins.
class FirstBytes : public testing::Test {
 protected:
  FirstBytes() {
    std::array<int, 2> ends{};
    core::check_errno(
        ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()),
        "socketpair");
    here_ = core::Fd(ends[0]);
    there_ = core::Fd(ends[1]);
  }

  void send(const std::string& bytes) {
    ASSERT_EQ(::send(there_.get(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] std::optional<bool> named() const { return names_a_key(here_.get(), *keys_); }
  /// Returns a record's header (RFC 8446 5.1) of that type and length.
  static std::string header(int type, std::size_t length) {
    return {static_cast<char>(type), 3, 1, static_cast<char>(length >> 8),
            static_cast<char>(length & 0xff)};
  }
  [[nodiscard]] int low_water_mark() const {
    int mark = -1;
    socklen_t size = sizeof mark;
    ::getsockopt(here_.get(), SOL_SOCKET, SO_RCVLOWAT, &mark, &size);
    return mark;
  }

  static constexpr int kHandshake = 22;
  static constexpr std::size_t kMost = 2048;
  std::shared_ptr<Keyring> keys_ = keyring_of(1, 2);
  core::Fd here_;
  core::Fd there_;
};

TEST_F(FirstBytes, NoneSayNothingYet) {
  EXPECT_EQ(named(), std::nullopt);
  there_.reset();
  errno = EAGAIN;  // of the call before
  EXPECT_EQ(named(), false) << "the peer is gone";
}

TEST_F(FirstBytes, ThatNameAKeyAreAWorkers) {
  for (const int value : {1, 2, 3}) {
    const std::string hello =
        "hello, I am dpu-gpu-offload worker " + fingerprint(test::key_of(value));
    send(header(kHandshake, hello.size()) + hello);
    EXPECT_EQ(named(), value != 3) << value;
    std::array<char, 200> all{};
    EXPECT_GT(::recv(here_.get(), all.data(), all.size(), 0), 0);
  }
}

TEST_F(FirstBytes, ArePatientlyWaitedFor) {
  const std::string hello = "dpu-gpu-offload worker " + fingerprint(test::key_of(1));
  send(header(kHandshake, hello.size()).substr(0, 2));
  EXPECT_EQ(named(), std::nullopt);
  EXPECT_EQ(low_water_mark(), 5) << "the header";
  send(header(kHandshake, hello.size()).substr(2));
  EXPECT_EQ(named(), std::nullopt);
  EXPECT_EQ(low_water_mark(), 5 + static_cast<int>(hello.size())) << "the record";
  send(hello);
  EXPECT_EQ(named(), true);
  EXPECT_EQ(low_water_mark(), 1) << "any byte";
}

TEST_F(FirstBytes, ThatEndEarlyAreRefused) {
  send(header(kHandshake, 100));
  EXPECT_EQ(named(), std::nullopt);
  there_.reset();
  EXPECT_EQ(named(), false);
}

TEST_F(FirstBytes, OfAnotherProtocolAreRefusedAtOnce) {
  send(header('G', 100));
  EXPECT_EQ(named(), false);
}

TEST_F(FirstBytes, OfARecordThatIsTooLongAreRefusedAtOnce) {
  send(header(kHandshake, kMost + 1));
  EXPECT_EQ(named(), false);
}

TEST_F(FirstBytes, MayBeOfTheLongestRecord) {
  send(header(kHandshake, kMost));
  EXPECT_EQ(named(), std::nullopt);
}

}  // namespace
}  // namespace offload::comch
