#include "comch/transport/local/control.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "protocol/control.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using protocol::MessageId;
using support::Bytes;
using support::bytes_of;
using support::thrown_by;

core::Fd make_eventfd() {
  return core::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

/// Both ends of a control connection.
class LocalConnections : public testing::Test {
 protected:
  /// One message, whatever is in it.
  void send_raw(std::span<const std::byte> bytes, std::span<const int> fds = {}) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(16 * sizeof(int))> control{};
    iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
    }
    ASSERT_EQ(::sendmsg(client_->fd(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  ErrorCode failure_of_receive() {
    return thrown_by([this] { server_->receive(); }).code();
  }

  static std::unique_ptr<LocalControlConnection> local(
      std::unique_ptr<ControlConnection> connection) {
    auto* const local = dynamic_cast<LocalControlConnection*>(connection.get());
    if (local == nullptr) throw std::runtime_error("no local connection");
    static_cast<void>(connection.release());
    return std::unique_ptr<LocalControlConnection>(local);
  }

  support::TempDir dir_;
  Address address_ = Address::parse("unix:" + dir_.file("comch"));
  std::unique_ptr<Listener> listener_ = listen_local(address_);
  std::unique_ptr<LocalControlConnection> client_ = local(connect_local(address_));
  std::unique_ptr<LocalControlConnection> server_ = local(listener_->accept());
};

TEST_F(LocalConnections, NothingHasComeYet) {
  EXPECT_FALSE(server_->receive());
  EXPECT_FALSE(listener_->accept());
}

TEST_F(LocalConnections, MessagesKeepTheirBoundaries) {
  client_->send(MessageId::hello, bytes_of("first"));
  client_->send(MessageId::keep_alive, {});
  client_->send(MessageId::welcome, bytes_of("third"));
  auto message = server_->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id, MessageId::hello);
  EXPECT_EQ(message->payload, support::copy_of(bytes_of("first")));
  EXPECT_TRUE(message->fds.empty());
  message = server_->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id, MessageId::keep_alive);
  EXPECT_TRUE(message->payload.empty());
  message = server_->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, support::copy_of(bytes_of("third")));
  EXPECT_FALSE(server_->receive());
}

TEST_F(LocalConnections, BothWays) {
  server_->send(MessageId::welcome, bytes_of("x"));
  const auto message = client_->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id, MessageId::welcome);
}

TEST_F(LocalConnections, DescriptorsTravelInTheirOrder) {
  const core::Fd bells[] = {make_eventfd(), make_eventfd(), make_eventfd()};
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint64_t value = i + 1;
    ASSERT_EQ(::write(bells[i].get(), &value, sizeof value), 8);
  }
  for (std::size_t count = 0; count <= 3; ++count) {
    const int numbers[] = {bells[0].get(), bells[1].get(), bells[2].get()};
    client_->send_with_fds(MessageId::channel_descriptor, {}, std::span(numbers).first(count));
    const auto message = server_->receive();
    ASSERT_TRUE(message);
    ASSERT_EQ(message->fds.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_NE(message->fds[i].get(), numbers[i]);
      EXPECT_NE(::fcntl(message->fds[i].get(), F_GETFD) & FD_CLOEXEC, 0);
    }
    if (count < 3) continue;
    for (std::uint64_t i = 0; i < 3; ++i) {
      std::uint64_t value = 0;
      ASSERT_EQ(::read(message->fds[i].get(), &value, sizeof value), 8);
      EXPECT_EQ(value, i + 1);
    }
  }
}

TEST_F(LocalConnections, NoMoreThanFourDescriptors) {
  const auto bell = make_eventfd();
  const int numbers[] = {bell.get(), bell.get(), bell.get(), bell.get(), bell.get()};
  const auto error = thrown_by([&] { client_->send_with_fds(MessageId::hello, {}, numbers); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
}

TEST_F(LocalConnections, AnythingButOneWholeFrameIsBad) {
  const auto frame = protocol::make_frame(MessageId::hello, bytes_of("hello"));
  std::vector<Bytes> bad;
  for (std::size_t size = 1; size < frame.size(); ++size) {
    bad.emplace_back(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
  }
  bad.push_back(frame);
  bad.back().push_back(std::byte{0});
  bad.push_back(frame);
  bad.back().insert(bad.back().end(), frame.begin(), frame.end());
  bad.push_back(protocol::make_frame(static_cast<MessageId>(77), {}));
  bad.push_back(Bytes(4, std::byte{0xff}));
  for (const Bytes& bytes : bad) {
    send_raw(bytes);
    EXPECT_EQ(failure_of_receive(), ErrorCode::bad_message) << bytes.size();
  }
  // Each was taken off whole: what comes after is good again.
  client_->send(MessageId::hello, {});
  EXPECT_TRUE(server_->receive());
}

TEST_F(LocalConnections, TheLongestMessageAndOneByteMore) {
  const Bytes longest(protocol::kMaxControlLength, std::byte{1});
  client_->send(MessageId::hello, longest);
  const auto message = server_->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, longest);
  for (const std::size_t more : {1U, 2U, 5000U}) {
    client_->send(MessageId::hello, Bytes(protocol::kMaxControlLength + more));
    EXPECT_EQ(failure_of_receive(), ErrorCode::bad_message);
  }
}

TEST_F(LocalConnections, DescriptorsOfABadMessageAreClosed) {
  const auto bell = make_eventfd();
  const std::vector<int> many(10, bell.get());
  const auto frame = protocol::make_frame(MessageId::hello, {});
  const auto before = open_descriptors();
  send_raw(frame, many);
  EXPECT_EQ(failure_of_receive(), ErrorCode::bad_message);
  send_raw(bytes_of("junk"), std::span(many).first(3));
  EXPECT_EQ(failure_of_receive(), ErrorCode::bad_message);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(LocalConnections, DescriptorsThatNobodyTakesAreClosed) {
  const auto bell = make_eventfd();
  const int number = bell.get();
  const auto before = open_descriptors();
  client_->send_with_fds(MessageId::hello, {}, std::span(&number, 1));
  server_->receive();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(LocalConnections, APeerThatLeavesIsNoticedAfterItsLastMessage) {
  client_->send(MessageId::shutdown_complete, {});
  client_.reset();
  EXPECT_TRUE(server_->receive());
  EXPECT_EQ(failure_of_receive(), ErrorCode::connection_reset);
  EXPECT_EQ(thrown_by([&] { server_->send(MessageId::keep_alive, {}); }).code(),
            ErrorCode::connection_reset);
  server_->refuse(protocol::Refusal::busy, "never thrown");
}

TEST_F(LocalConnections, APeerThatDoesNotReadIsAnErrorNotAWait) {
  const auto error = thrown_by([&] {
    for (int i = 0; i < 100'000; ++i) client_->send(MessageId::keep_alive, Bytes(1000));
  });
  EXPECT_EQ(error.code(), ErrorCode::timed_out);
}

TEST_F(LocalConnections, ARefusalIsAnErrorFrame) {
  server_->refuse(protocol::Refusal::busy, "another worker is here");
  const auto message = client_->receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->id, MessageId::error);
  const auto refusal = protocol::parse_error(message->payload);
  EXPECT_EQ(refusal.code, protocol::Refusal::busy);
  EXPECT_EQ(refusal.text, "another worker is here");
}

TEST_F(LocalConnections, PeersKnowEachOther) {
  for (const auto* const connection : {client_.get(), server_.get()}) {
    EXPECT_EQ(connection->peer().pid, ::getpid());
    EXPECT_EQ(connection->peer().uid, ::geteuid());
  }
}

TEST_F(LocalConnections, NothingBlocksAndNothingIsInherited) {
  for (const int fd : {client_->fd(), server_->fd(), listener_->fd()}) {
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
}

}  // namespace
}  // namespace offload::comch
