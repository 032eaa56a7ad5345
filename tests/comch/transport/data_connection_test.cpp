#include "comch/transport/data_connection.hpp"

#include <gtest/gtest.h>

#include "tests/comch/transport/recording_handler.hpp"

namespace offload::comch {
namespace {

using protocol::DataHeader;

/// A data connection that carries nothing: tests the rules for all data connections.
class Rules final : public DataConnection {
 public:
  Rules(DataHandler& handler, std::uint32_t initial_credits)
      : DataConnection(handler, kernels::make_layout(4, 100, 300), initial_credits) {}

  void post_send(const DataHeader&, const std::byte*) noexcept override {}
  using DataConnection::check;
  using DataConnection::complete_sends;
  using DataConnection::fail;

  bool receive(std::uint64_t sequence, std::uint32_t length = 0, std::uint16_t count = 0) {
    const DataHeader header{sequence, length, count};
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

TEST_F(DataConnectionRules, ResponsesMayBeLongerThanEveryRequest) {
  server_.complete_sends(2);
  EXPECT_TRUE(server_.receive(0, 300));
  EXPECT_FALSE(server_.receive(1, 301));
  EXPECT_EQ(*server_.failure(),
            "the peer sent a message of 301 bytes, over the 300 of the channel");
}

// The connection only checks that the batch's table fits; the reader checks the rest.
TEST_F(DataConnectionRules, BatchesAreAsLongAsASlotsMayBe) {
  Rules connection(handler_, 4);
  EXPECT_TRUE(connection.receive(0, 2, 1));
  EXPECT_TRUE(connection.receive(1, 2 * kernels::kMaxBatchCount, kernels::kMaxBatchCount));
  EXPECT_TRUE(connection.receive(2, kernels::kMaxBatchContent, 2));
  EXPECT_FALSE(connection.receive(3, kernels::kMaxBatchContent + 1, 2));
  EXPECT_EQ(*connection.failure(), "the peer sent 5121 bytes, which are not a batch of 2 messages");
  for (const auto& [length, count] : {std::pair<std::uint32_t, std::uint16_t>{0, 1},
                                      {1, 1},
                                      {3, 2},
                                      {200, kernels::kMaxBatchCount + 1},
                                      {~0U, 0xffff}}) {
    Rules other(handler_, 4);
    EXPECT_FALSE(other.receive(0, length, count)) << length << ", " << count;
  }
}

TEST_F(DataConnectionRules, AHandlerMayRefuseAMessage) {
  handler_.takes = false;
  EXPECT_FALSE(worker_.receive(0));
  EXPECT_EQ(*worker_.failure(), "a message of the peer is not acceptable");
}

TEST_F(DataConnectionRules, TheFirstReasonStays) {
  server_.fail("one");
  server_.fail("another");
  EXPECT_TRUE(server_.failed());
  EXPECT_EQ(*server_.failure(), "one");
}

}  // namespace
}  // namespace offload::comch
