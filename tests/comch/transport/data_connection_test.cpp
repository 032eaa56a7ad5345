#include "comch/transport/data_connection.hpp"

#include <gtest/gtest.h>

#include "tests/comch/transport/recording_handler.hpp"

namespace offload::comch {
namespace {

using protocol::DataHeader;

/// A data connection that carries nothing: the rules that all have.
class Rules final : public DataConnection {
 public:
  Rules(DataHandler& handler, std::uint32_t initial_credits)
      : DataConnection(handler, 100, initial_credits) {}

  void post_send(const DataHeader&, const std::byte*) noexcept override {}
  using DataConnection::check;
  using DataConnection::complete_sends;
  using DataConnection::fail;

  bool receive(std::uint64_t sequence, std::uint32_t length = 0) {
    const DataHeader header{sequence, length, 0};
    if (check(header)) deliver(header, support::Bytes(length));
    return !failed();
  }
};

class DataConnectionRules : public testing::Test {
 protected:
  test::RecordingHandler handler_{kernels::ChannelView{}};
  Rules server_{handler_, 0};
  Rules worker_{handler_, 2};
};

TEST_F(DataConnectionRules, EachSendIsACredit) {
  server_.complete_sends(2);
  EXPECT_EQ(handler_.sent, 2U);
  EXPECT_TRUE(server_.receive(0));
  EXPECT_TRUE(server_.receive(1));
  EXPECT_FALSE(server_.receive(2));
  EXPECT_EQ(*server_.failure(), "the peer sent a message that is not due");
  EXPECT_EQ(handler_.taken.size(), 2U);
}

TEST_F(DataConnectionRules, InitialCreditsComeBeforeAnySend) {
  EXPECT_TRUE(worker_.receive(0));
  EXPECT_TRUE(worker_.receive(1));
  worker_.complete_sends(1);
  EXPECT_TRUE(worker_.receive(2));
  EXPECT_FALSE(worker_.receive(3));
}

TEST_F(DataConnectionRules, MessagesComeInOrder) {
  for (const std::uint64_t wrong : {std::uint64_t{1}, ~std::uint64_t{0}}) {
    Rules connection(handler_, 2);
    EXPECT_FALSE(connection.receive(wrong));
    EXPECT_EQ(*connection.failure(), "the peer sent a message that is not due");
  }
  EXPECT_TRUE(worker_.receive(0));
  EXPECT_FALSE(worker_.receive(0)) << "one twice";
}

TEST_F(DataConnectionRules, LengthsAreTheChannels) {
  EXPECT_TRUE(worker_.receive(0, 100));
  EXPECT_FALSE(worker_.receive(1, 101));
  EXPECT_EQ(*worker_.failure(),
            "the peer sent a message of 101 bytes, over the 100 of the channel");
}

TEST_F(DataConnectionRules, AHandlerMayRefuseAMessage) {
  handler_.takes = false;
  EXPECT_FALSE(worker_.receive(0));
  EXPECT_EQ(*worker_.failure(), "a message of the peer cannot be taken");
}

TEST_F(DataConnectionRules, TheFirstReasonStays) {
  server_.fail("one");
  server_.fail("another");
  EXPECT_TRUE(server_.failed());
  EXPECT_EQ(*server_.failure(), "one");
}

}  // namespace
}  // namespace offload::comch
