#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/server/fixtures/io_threads_fixture.hpp"
#include "tests/support/eventually.hpp"

/// Clients that were already connected when a request from their address crashed workers.
namespace offload::server {
namespace {

using protocol::Refusal;
using support::bytes_of;
using test::address;
using test::error;
using test::response;

class PausedClients : public test::IoThreadsFixture {
 protected:
  /// Lets an address wait for longer than a test takes.
  void begin_to_wait(std::uint32_t from) {
    waiting_->add(address(from), core::Clock::now() + std::chrono::hours(1));
    turn();
  }
  /// Lets others take the places of all addresses that wait.
  void end_to_wait() {
    for (std::size_t i = 0; i < WaitingAddresses::kMost; ++i) {
      waiting_->add(address(1000), core::Clock::now());
    }
    turn();
  }
  /// Connects a client that has had three workers killed.
  Client& connect_culprit(std::uint32_t from) {
    Client& culprit = connect(from);
    ask(culprit, "fatal");
    return culprit;
  }
};

TEST_F(PausedClients, AreAnsweredWhenTheirAddressNoLongerWaits) {
  open(2);
  Client& sibling = connect(2, 0);
  Client& elsewhere = connect(2, 1);
  Client& honest = connect(3, 0);
  Client& culprit = connect_culprit(2);
  lose();
  lose_two_more();
  EXPECT_EQ(next(culprit), error(Refusal::worker_failed));
  attach();
  for (const char* text : {"1st", "2nd"}) ask(sibling, text);
  ask(elsewhere, "3rd");
  EXPECT_FALSE(worker(0).has_request() || worker(1).has_request());
  ask(honest, "4th");
  expect_alone(honest, "ht4");
  EXPECT_FALSE(next(sibling) || sibling.received.ended);

  end_to_wait();
  (void)worker(0).serve_all();
  EXPECT_EQ(next(sibling), response(bytes_of("ts1")));
  (void)worker(0).serve_all();
  EXPECT_EQ(next(sibling), response(bytes_of("dn2")));
  expect_alone(elsewhere, "dr3", 1);
}

TEST_F(PausedClients, TheirSuspectsWaitToo) {
  open(2);
  Client& culprit = connect_culprit(2);
  Client& sibling = connect(2, 0);
  Client& elsewhere = connect(2, 1);
  Client& honest = connect(3, 0);
  for (const char* text : {"1st", "2nd"}) ask(sibling, text);
  ask(elsewhere, "3rd");
  ask(honest, "4th");
  lose();
  lose_two_more();
  EXPECT_EQ(next(culprit), error(Refusal::worker_failed));
  attach();
  expect_alone(honest, "ht4");
  EXPECT_FALSE(worker(0).has_request() || worker(1).has_request());
  ask(sibling, "5th");
  EXPECT_EQ(metrics_->culprits.value(), 1U);

  end_to_wait();
  for (const char* reversed : {"ts1", "dn2"}) expect_alone(sibling, reversed);
  expect_alone(elsewhere, "dr3", 1);
  expect_alone(sibling, "ht5");
}

// It was in the channel when the pause began.
TEST_F(PausedClients, ARequestThatAWorkerIsLostWithWaitsThen) {
  open();
  Client& client = connect(2);
  for (const char* text : {"1st", "2nd"}) ask(client, text);
  lose();
  attach();
  ASSERT_TRUE(worker().has_request());
  begin_to_wait(2);
  lose();
  attach();
  EXPECT_FALSE(worker().has_request());
  end_to_wait();
  for (const char* reversed : {"ts1", "dn2"}) expect_alone(client, reversed);
}

TEST_F(PausedClients, ACulpritLosesWhatWaits) {
  open();
  Client& client = connect(2);
  for (const char* text : {"fatal", "2nd"}) ask(client, text);
  lose();
  attach();
  lose();
  attach();
  ASSERT_TRUE(worker().has_request());
  begin_to_wait(2);
  lose();
  EXPECT_EQ(next(client), error(Refusal::worker_failed));
  EXPECT_TRUE(ended(client));
  client.socket.reset();
  turn();
  EXPECT_EQ(threads_[0]->client_count(), 0U);
}

TEST_F(PausedClients, GoOnByThemselves) {
  open();
  Client& client = connect(2);
  waiting_->add(address(2),
                core::Clock::now() - WaitingAddresses::kTime + std::chrono::milliseconds(50));
  ask(client, "request");
  threads_[0]->turn(core::Clock::now() + support::kBound);  // sleeps until the time is over
  ASSERT_TRUE(support::eventually([&] { return turn(), worker().has_request(); }));
  expect_alone(client, "tseuqer");
}

// The client may be one whose handshake was in progress.
TEST_F(PausedClients, WhoComesThenIsPaused) {
  open();
  begin_to_wait(2);
  Client& client = connect(2);
  ask(client, "request");
  EXPECT_FALSE(worker().has_request());
  end_to_wait();
  expect_alone(client, "tseuqer");
}

TEST_F(PausedClients, WhoHasSentAllIsAnsweredBeforeItEnds) {
  open();
  Client& client = connect(2);
  begin_to_wait(2);
  ask(client, "request");
  ::shutdown(client.socket.get(), SHUT_WR);
  turn();
  EXPECT_FALSE(worker().has_request());
  end_to_wait();
  expect_alone(client, "tseuqer");
  EXPECT_TRUE(ended(client));
}

TEST_F(PausedClients, AreRefusedWithoutAWorker) {
  open();
  Client& client = connect(2);
  ask(client, "1st");
  begin_to_wait(2);
  lose();
  EXPECT_EQ(next(client), std::nullopt);
  threads_[0]->set_expired(true);
  EXPECT_EQ(next(client), error(Refusal::worker_unavailable));
}

TEST_F(PausedClients, AreToldWhenTheServerEnds) {
  open();
  Client& client = connect(2);
  Client& honest = connect(3);
  for (const char* text : {"1st", "2nd"}) ask(client, text);
  ask(honest, "3rd");
  lose();
  attach();
  ASSERT_TRUE(worker().has_request());
  begin_to_wait(2);
  ask(client, "4th");
  threads_[0]->drain();
  turn();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next(client), error(Refusal::shutting_down)) << i;
  EXPECT_TRUE(ended(client));
  EXPECT_TRUE(worker().serve());  // the 1st, whose client is gone
  turn();
  expect_alone(honest, "dr3");
}

TEST_F(PausedClients, DoNotKeepAServerThatEndsAlready) {
  open();
  Client& client = connect(2);
  for (const char* text : {"1st", "2nd"}) ask(client, text);
  lose();
  attach();
  threads_[0]->drain();
  begin_to_wait(2);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next(client), error(Refusal::shutting_down)) << i;
  EXPECT_TRUE(ended(client));
}

}  // namespace
}  // namespace offload::server
