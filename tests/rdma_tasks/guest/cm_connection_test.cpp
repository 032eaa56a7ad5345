#include "rdma_tasks/cm/cm_connection.hpp"

#include <list>

#include "tests/rdma_tasks/guest/fixture.hpp"
#include "tests/support/thrown.hpp"

/// Connections by librdmacm.
namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using support::bytes_of;
using support::thrown_by;
using State = CmConnection::State;

/// One end of a CM connection, and its callbacks in order.
struct End {
  End(const SharedObjects& objects, progress::Engine& engine, const std::string& name)
      : side(objects, small(), engine, name),
        cm(engine, side.connection,
           {[this](CmConnection&) { told.emplace_back("connected"); },
            [this](CmConnection&, const core::Error& why) {
              told.emplace_back(name_of(why.code()));
            }}) {
    side.connection.start();
  }
  static ConnectionOptions small() {
    ConnectionOptions options;
    options.queues.max_send_wr = options.queues.max_recv_wr = 16;
    return options;
  }

  Side side;
  std::vector<std::string> told;
  CmConnection cm;
};

class CmGuestTest : public DeviceTest {
 protected:
  static constexpr auto kLimit = std::chrono::seconds(10);

  CmGuestTest() : address_(to_string(choose_gid(device_.gids(), {}).gid)) {}
  ~CmGuestTest() override {
    for (auto* ends : {&clients_, &servers_}) {
      for (End& end : *ends) stop(end.side.connection);
    }
  }

  void listen() {
    listener_.emplace(engine_, CmAddress{address_, 0}, [this](ConnectRequest request) {
      asked_.emplace_back(reinterpret_cast<const char*>(request.private_data().data()),
                          request.private_data().size());
      EXPECT_EQ(request.device_name(), device_.name());
      if (reject_) return;
      End& server = servers_.emplace_back(objects(), engine_, "server");
      server.cm.accept(std::move(request), kLimit, bytes_of("welcome"));
    });
  }
  End& client() { return clients_.emplace_back(objects(), engine_, "client"); }
  End& connect(const std::string& words) {
    End& made = client();
    made.cm.connect({address_, listener_->port()}, kLimit, bytes_of(words));
    return made;
  }
  bool told(const End& end, std::size_t count) {
    return until([&] { return end.told.size() >= count; });
  }

  std::string address_;
  bool reject_ = false;
  std::vector<std::string> asked_;
  std::list<End> clients_;
  std::list<End> servers_;
  std::optional<CmListener> listener_;
};

TEST_F(CmGuestTest, OneServerTakesManyPeers) {
  listen();
  constexpr std::size_t kPeers = 4;
  for (std::size_t i = 0; i < kPeers; ++i) {
    End& peer = connect("peer " + std::to_string(i));
    ASSERT_TRUE(told(peer, 1));
    EXPECT_EQ(peer.told, Lines{"connected"});
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(peer.cm.private_data().data()),
                          peer.cm.private_data().size()),
              "welcome");
  }
  EXPECT_EQ(asked_, (Lines{"peer 0", "peer 1", "peer 2", "peer 3"}));
  std::size_t number = 0;
  std::list<memory::BufferRef> buffers;
  for (End& server : servers_) {
    ASSERT_TRUE(told(server, 1));
    EXPECT_EQ(server.told, Lines{"connected"});
    buffers.push_back(room(65536 + number * 100, 100));
    ReceiveTask& receive = taken(server.side.receives);
    receive.destination = buffers.back().get();
    ASSERT_EQ(server.side.connection.submit(receive), Status());
    ++number;
  }
  number = 0;
  for (End& peer : clients_) {
    buffers.push_back(data(number * 100, 100));
    SendTask& send = taken(peer.side.sends);
    send.source = buffers.back().get();
    ASSERT_EQ(peer.side.connection.submit(send), Status());
    ++number;
  }
  for (End& server : servers_) {
    EXPECT_TRUE(until([&] { return !server.side.outcomes.all.empty(); }));
    EXPECT_EQ(server.side.outcomes.all, Lines{"ok"});
  }
  const auto sent = bytes(0, kPeers * 100);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), bytes(65536, kPeers * 100).begin()));
}

TEST_F(CmGuestTest, APeerThatDisconnectsIsToldToBothEnds) {
  listen();
  End& peer = connect("");
  ASSERT_TRUE(told(peer, 1));
  ASSERT_TRUE(told(servers_.front(), 1));
  peer.cm.disconnect();
  ASSERT_TRUE(told(servers_.front(), 2));
  ASSERT_TRUE(told(peer, 2));
  EXPECT_EQ(servers_.front().told, (Lines{"connected", "connection_reset"}));
  EXPECT_EQ(servers_.front().cm.state(), State::ended);
  EXPECT_EQ(peer.told, (Lines{"connected", "connection_reset"}));
}

TEST_F(CmGuestTest, APeerThatIsRejectedIsTold) {
  reject_ = true;
  listen();
  End& peer = connect("please");
  ASSERT_TRUE(told(peer, 1));
  EXPECT_EQ(peer.told, Lines{"not_connected"});
  EXPECT_EQ(peer.cm.state(), State::ended);
}

TEST_F(CmGuestTest, AConnectionThatIsStoppedMeanwhileEndsIt) {
  listen();
  End& peer = connect("");
  peer.side.connection.stop();
  ASSERT_TRUE(told(peer, 1));
  EXPECT_EQ(peer.told, Lines{"bad_state"});
}

TEST_F(CmGuestTest, NobodyListensIsAnError) {
  End& peer = client();
  peer.cm.connect({address_, 9}, kLimit);
  ASSERT_TRUE(told(peer, 1));
  EXPECT_EQ(peer.told, Lines{"not_connected"});
}

TEST_F(CmGuestTest, WhoDoesNotAnswerIsGivenUp) {
  std::optional<ConnectRequest> kept;
  listener_.emplace(engine_, CmAddress{address_, 0},
                    [&](ConnectRequest request) { kept.emplace(std::move(request)); });
  End& peer = client();
  peer.cm.connect({address_, listener_->port()}, std::chrono::milliseconds(500));
  ASSERT_TRUE(told(peer, 1));
  EXPECT_EQ(peer.told, Lines{"timed_out"});
  EXPECT_TRUE(kept);
}

TEST_F(CmGuestTest, WhatCannotBeIsRefusedAtOnce) {
  End& peer = client();
  EXPECT_EQ(thrown_by([&] {
              peer.cm.connect({"somewhere", 9}, kLimit);
            }).code(),
            ErrorCode::invalid_value);
  EXPECT_EQ(thrown_by([&] {
              peer.cm.connect({address_, 9}, kLimit, bytes_of("more than it can carry"));
            }).code(),
            ErrorCode::invalid_value);
  EXPECT_EQ(thrown_by([&] {
              const CmListener listener(engine_, {"somewhere", 9}, {});
            }).code(),
            ErrorCode::invalid_value);
  listen();
  EXPECT_EQ(thrown_by([&] {
              const CmListener second(engine_, {address_, listener_->port()}, {});
            }).code(),
            ErrorCode::in_use);
  End& connecting = connect("");
  EXPECT_EQ(thrown_by([&] {
              connecting.cm.connect({address_, 9}, kLimit);
            }).code(),
            ErrorCode::bad_state);
  ASSERT_TRUE(told(connecting, 1));
}

}  // namespace
}  // namespace offload::rdma
