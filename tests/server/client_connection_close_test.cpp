#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "apps/server/client_connection.hpp"
#include "tests/server/client_connection_fixture.hpp"

/// Tests how a connection ends.
namespace offload::server {
namespace {

using protocol::Refusal;
using State = ConnectionState;
using ClientConnectionCloseTest = ClientConnectionTest;

// ---- The client disconnects

TEST_F(ClientConnectionCloseTest, AHalfCloseIsAnsweredToItsEnd) {
  client_sends(bytes_of("last words"));
  ASSERT_EQ(::shutdown(client_.get(), SHUT_WR), 0);
  receive_all();
  EXPECT_EQ(connection_->state(), State::draining);
  EXPECT_EQ(copy_of(connection_->input().bytes()), copy_of(bytes_of("last words")));
  connection_->add_request();
  EXPECT_FALSE(connection_->finishing());
  connection_->remove_requests(1);
  respond("answer");
  ASSERT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::closed);
  EXPECT_EQ(client_reads(), copy_of(bytes_of("answer")));
  EXPECT_TRUE(client_at_end_);
}

TEST_F(ClientConnectionCloseTest, ACloseIsSeenAsAnEnd) {
  client_.reset();
  receive_all();
  EXPECT_EQ(connection_->state(), State::draining);
  EXPECT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::closed);
}

TEST_F(ClientConnectionCloseTest, AResetClosesIt) {
  respond("unread");
  client_.reset();  // with something unread: the connection is reset
  receive_all();
  EXPECT_EQ(connection_->state(), State::closed);
  EXPECT_EQ(connection_->end(), ConnectionEnd::reset);
}

TEST_F(ClientConnectionCloseTest, TheFirstReasonOfItsEndStays) {
  connection_->drain();
  connection_->refuse(Refusal::frame_too_long);
  connection_->close(ConnectionEnd::reset);
  EXPECT_EQ(connection_->end(), ConnectionEnd::shutdown);
}

TEST_F(ClientConnectionCloseTest, ARefusalSaysWhyItEnds) {
  connection_->refuse(Refusal::idle_timed_out);
  EXPECT_EQ(connection_->end(), ConnectionEnd::timeout);
}

TEST_F(ClientConnectionCloseTest, SendingToAClientThatIsGoneClosesIt) {
  connection_->add_request();
  client_.reset();
  respond("too late");
  EXPECT_EQ(connection_->state(), State::closed);
  EXPECT_FALSE(connection_->disposable());  // one of its requests is still in progress
  respond("later still");
  connection_->remove_requests(1);
  EXPECT_TRUE(connection_->disposable());
}

TEST_F(ClientConnectionCloseTest, AClosedConnectionIsKeptWhileThereIsOutputOfIt) {
  gather_.commit(connection_->chain(), 1);
  connection_->close();
  EXPECT_FALSE(connection_->disposable());
  connection_->send(gather_);
  EXPECT_TRUE(connection_->disposable());
}

TEST_F(ClientConnectionCloseTest, ClosedItHoldsNoMemoryForAClientThatIsGone) {
  respond_until_stuck();
  connection_->add_request();  // this keeps the object
  ASSERT_GT(connection_->backlog().held(), 0U);
  connection_->close();
  EXPECT_EQ(connection_->backlog().held(), 0U);
  EXPECT_EQ(connection_->input().held(), 0U);
}

TEST_F(ClientConnectionCloseTest, ClosingEndsTheConnectionOnce) {
  connection_->close();
  connection_->close();
  client_reads();
  EXPECT_TRUE(client_at_end_);
  client_.reset();
  const int before = ready_;
  turn();
  EXPECT_EQ(ready_, before);
}

TEST_F(ClientConnectionCloseTest, TheEndOfTheObjectIsTheEndOfTheConnection) {
  connection_.reset();
  client_reads();
  EXPECT_TRUE(client_at_end_);
}

// ---- The server disconnects

TEST_F(ClientConnectionCloseTest, DrainingItReadsNoMoreAndSaysSoWhenAllIsAnswered) {
  connection_->add_request();
  connection_->drain();
  EXPECT_EQ(connection_->state(), State::draining);
  client_sends(bytes_of("ignored"));
  turn();
  EXPECT_FALSE(connection_->wants_to_read());
  EXPECT_FALSE(connection_->finishing());
  connection_->remove_requests(1);
  respond("answer");
  ASSERT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::lingering);
  EXPECT_EQ(client_reads(), copy_of(bytes_of("answer")));
  EXPECT_TRUE(client_at_end_);
}

TEST_F(ClientConnectionCloseTest, OutputThatIsNotSentYetKeepsItFromFinishing) {
  connection_->drain();
  gather_.commit(connection_->chain(), 1);
  EXPECT_FALSE(connection_->finishing());
  connection_->send(gather_);
  EXPECT_TRUE(connection_->finishing());
}

TEST_F(ClientConnectionCloseTest, LingeringItDiscardsUntilTheClientCloses) {
  connection_->drain();
  connection_->finish(gather_);
  ASSERT_EQ(connection_->state(), State::lingering);
  const Bytes chunk(16384);
  std::size_t sent = 0;
  EXPECT_TRUE(support::eventually([&] { return sent > (std::size_t{8} << 20); },
                                  [&] {
                                    const ssize_t count =
                                        ::send(client_.get(), chunk.data(), chunk.size(), 0);
                                    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
                                    turn();
                                  }));
  EXPECT_EQ(connection_->state(), State::lingering);
  EXPECT_TRUE(connection_->input().bytes().empty());
  respond("never sent");
  client_.reset();
  turn();
  EXPECT_EQ(connection_->state(), State::closed);
}

// Each receive takes one packet, so the packets show the number of receives.
TEST_F(ClientConnectionCloseTest, LingeringItDiscardsABoundedShareAtOnce) {
  connection_.reset();
  open(SOCK_SEQPACKET);
  connection_->drain();
  connection_->finish(gather_);
  ASSERT_EQ(connection_->state(), State::lingering);
  for (int i = 0; i < 100; ++i) client_sends(bytes_of("x"));
  const auto unread = [&] {
    int bytes = 0;
    EXPECT_EQ(::ioctl(client_.get(), SIOCOUTQ, &bytes), 0);
    return bytes;
  };
  const int all = unread();
  turn();
  EXPECT_LT(unread(), all);
  EXPECT_GT(unread(), 0);
  client_sends(bytes_of("x"));  // an event
  turn();
  EXPECT_EQ(unread(), 0);
}

// ---- Refusals

TEST_F(ClientConnectionCloseTest, ARefusalComesAfterTheAnswersThatAreDue) {
  client_sends(bytes_of("nonsense"));
  receive_all();
  connection_->add_request();
  connection_->refuse(Refusal::frame_too_long);
  EXPECT_EQ(connection_->state(), State::refusing);
  EXPECT_TRUE(connection_->input().bytes().empty());
  EXPECT_FALSE(connection_->finishing());
  connection_->drain();  // a shutdown changes nothing about it
  EXPECT_EQ(connection_->state(), State::refusing);
  connection_->remove_requests(1);
  respond("answer ");
  ASSERT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::lingering);

  auto expected = copy_of(bytes_of("answer "));
  const auto error = protocol::make_error_frame(Refusal::frame_too_long,
                                                protocol::describe(Refusal::frame_too_long));
  expected.insert(expected.end(), error.begin(), error.end());
  EXPECT_EQ(client_reads(), expected);
  EXPECT_TRUE(client_at_end_);
}

TEST_F(ClientConnectionCloseTest, ARefusalMayHaveATextInsteadOfAnErrorFrame) {
  connection_->refuse(Refusal::frame_too_long, "HTTP/1.1 400 Bad Request\r\n\r\n");
  ASSERT_TRUE(connection_->finishing());
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::lingering);
  EXPECT_EQ(connection_->end(), ConnectionEnd::protocol);
  EXPECT_EQ(client_reads(), copy_of(bytes_of("HTTP/1.1 400 Bad Request\r\n\r\n")));
  EXPECT_TRUE(client_at_end_);
}

TEST_F(ClientConnectionCloseTest, ARefusalWaitsForASlowClient) {
  auto expected = respond_until_stuck();
  connection_->refuse(Refusal::length_mismatch);
  EXPECT_FALSE(connection_->finishing());
  const auto error = protocol::make_error_frame(Refusal::length_mismatch,
                                                protocol::describe(Refusal::length_mismatch));
  const auto finish_if_due = [&] {
    if (connection_->finishing()) connection_->finish(gather_);
  };
  Bytes got;
  EXPECT_TRUE(support::eventually([&] { return client_at_end_; },
                                  [&] {
                                    const auto more = client_reads();
                                    got.insert(got.end(), more.begin(), more.end());
                                    turn();
                                    finish_if_due();
                                  }));
  expected.insert(expected.end(), error.begin(), error.end());
  EXPECT_EQ(got, expected);
}

TEST_F(ClientConnectionCloseTest, AfterAnEndOfFileARefusalIsStillSent) {
  client_sends(bytes_of("nonsense"));
  ASSERT_EQ(::shutdown(client_.get(), SHUT_WR), 0);
  receive_all();
  ASSERT_EQ(connection_->state(), State::draining);
  connection_->refuse(Refusal::frame_too_short);
  connection_->finish(gather_);
  EXPECT_EQ(connection_->state(), State::closed);
  const auto frame = client_reads();
  const auto view = protocol::parse_frame(frame, 1000);
  EXPECT_EQ(view.id, protocol::MessageId::error);
  EXPECT_TRUE(client_at_end_);
}

}  // namespace
}  // namespace offload::server
