#include "rdma_tasks/cm/cm_connection.hpp"

#include <utility>

#include "tests/rdma_tasks/connection_fixture.hpp"
#include "tests/rdma_tasks/fake_cm.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// CM connections without a device; tests/rdma/guest has them with one.
namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::Bytes;
using support::bytes_of;
using support::copy_of;
using support::thrown_by;
using test::fake_cm;

/// Private data as a CmConnection sends it, in a CM message that pads it.
Bytes packed(const ConnectionDescriptor& descriptor, std::string_view user) {
  Bytes data = descriptor.encode();
  data.push_back(static_cast<std::byte>(user.size()));
  for (const char letter : user) data.push_back(static_cast<std::byte>(letter));
  data.resize(std::max<std::size_t>(data.size(), 56));
  return data;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class CmConnectionTest : public ConnectionTest {
 protected:
  static constexpr auto kLimit = std::chrono::seconds(10);

  CmConnectionTest() {
    test::reset_fake_cm();
    fake_cm().verbs = device_.get();
    fake_cm().sgid = parse_gid("10.0.0.1");
    make();
    connection_.start();
  }
  ~CmConnectionTest() override {
    cm_.reset();
    EXPECT_EQ(fake_cm().identifiers, 0);
    EXPECT_EQ(fake_cm().channels, 0);
    EXPECT_EQ(fake_cm().unacknowledged, 0);
  }
  void make() {
    cm_.emplace(engine_, connection_,
                CmConnection::Callbacks{[this](CmConnection&) { told_.emplace_back("connected"); },
                                        [this](CmConnection&, const core::Error& why) {
                                          told_.emplace_back(core::name_of(why.code()));
                                          why_ = why.what();
                                        }});
  }
  void connect(CmExchange exchange = CmExchange::descriptors, core::Duration limit = kLimit) {
    cm_->connect({"10.0.0.2", 7174}, limit, bytes_of("hello"), exchange);
  }
  void deliver(rdma_cm_event_type type, Bytes data = {}, int status = 0) {
    fake_cm().deliver(type, std::move(data), status);
    turn();
  }
  void connect_until_response() {
    connect();
    deliver(RDMA_CM_EVENT_ADDR_RESOLVED);
    deliver(RDMA_CM_EVENT_ROUTE_RESOLVED);
  }
  static CmEvent request(Bytes data) {
    CmEvent event;
    event.type = RDMA_CM_EVENT_CONNECT_REQUEST;
    event.id = fake_cm().make_requested();
    event.private_data = std::move(data);
    return event;
  }
  ErrorCode refusal_of(Bytes data) {
    return thrown_by([&] {
             const ConnectRequest refused(request(std::move(data)), CmExchange::descriptors);
           })
        .code();
  }

  std::optional<CmConnection> cm_;
  Lines told_;
  std::string why_;
};

TEST_F(CmConnectionTest, ConnectsByTheDescriptorsInThePrivateData) {
  connect_until_response();
  EXPECT_EQ(fake_cm().parameters.qp_num, queue().native.qp_num);
  const Bytes sent = packed(connection_.descriptor(), "hello");
  EXPECT_TRUE(
      std::equal(fake_cm().private_data.begin(), fake_cm().private_data.end(), sent.begin()));
  EXPECT_TRUE(told_.empty());
  deliver(RDMA_CM_EVENT_CONNECT_RESPONSE, packed(a_peer(), "welcome"));
  EXPECT_EQ(told_, Lines{"connected"});
  EXPECT_EQ(cm_->state(), CmConnection::State::connected);
  EXPECT_EQ(text_of(cm_->private_data()), "welcome");
  EXPECT_TRUE(connection_.connected());
  EXPECT_EQ(queue().modified.at(1).dest_qp_num, a_peer().qp_num);
  EXPECT_TRUE(fake_cm().called("rdma_establish"));
  deliver(RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(told_, (Lines{"connected", "connection_reset"}));
  deliver(RDMA_CM_EVENT_DISCONNECTED);  // and nothing after the end
  EXPECT_EQ(told_.size(), 2U);
}

TEST_F(CmConnectionTest, ConnectsByTheParametersOfTheMessages) {
  fake_cm().attributes.dest_qp_num = 42;
  fake_cm().attributes.path_mtu = IBV_MTU_512;
  fake_cm().attributes.ah_attr.grh.dgid = parse_gid("10.0.0.2");
  fake_cm().attributes.sq_psn = 6;
  fake_cm().attributes.max_rd_atomic = 1;
  connect(CmExchange::parameters);
  deliver(RDMA_CM_EVENT_ADDR_RESOLVED);
  deliver(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(text_of(fake_cm().private_data), "hello");
  deliver(RDMA_CM_EVENT_CONNECT_RESPONSE, copy_of(bytes_of("anything")));
  EXPECT_EQ(told_, Lines{"connected"});
  EXPECT_EQ(queue().modified.at(1).dest_qp_num, 42U);
  EXPECT_EQ(queue().modified.at(1).path_mtu, IBV_MTU_512);
  EXPECT_EQ(queue().modified.at(2).sq_psn, 6U);
}

TEST_F(CmConnectionTest, AnotherGidThanThePeerKnowsIsRefused) {
  fake_cm().sgid = parse_gid("10.0.0.9");
  connect(CmExchange::parameters);
  deliver(RDMA_CM_EVENT_CONNECT_RESPONSE);
  EXPECT_EQ(told_, Lines{"invalid_value"});
}

TEST_F(CmConnectionTest, EveryEventThatEndsItHasItsError) {
  const std::pair<rdma_cm_event_type, const char*> events[] = {
      {RDMA_CM_EVENT_REJECTED, "not_connected"},
      {RDMA_CM_EVENT_ADDR_ERROR, "not_connected"},
      {RDMA_CM_EVENT_ROUTE_ERROR, "not_connected"},
      {RDMA_CM_EVENT_UNREACHABLE, "not_connected"},
      {RDMA_CM_EVENT_DEVICE_REMOVAL, "driver"},
      {RDMA_CM_EVENT_CONNECT_ERROR, "connection_aborted"}};
  for (const auto& [type, code] : events) {
    told_.clear();
    make();
    connect();
    deliver(type, {}, -EHOSTUNREACH);
    EXPECT_EQ(told_, Lines{code});
    EXPECT_EQ(cm_->state(), CmConnection::State::ended);
  }
}

TEST_F(CmConnectionTest, ACallThatFailsEndsItOnce) {
  for (const char* const call : {"rdma_resolve_route", "rdma_connect", "rdma_establish"}) {
    if (connection_.connected()) {
      connection_.stop();
      turn();
      connection_.start();
    }
    told_.clear();
    make();
    fake_cm().fail_call = call;
    fake_cm().fail_with = EIO;
    connect();
    deliver(RDMA_CM_EVENT_ADDR_RESOLVED);
    if (told_.empty()) deliver(RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (told_.empty()) deliver(RDMA_CM_EVENT_CONNECT_RESPONSE, packed(a_peer(), ""));
    EXPECT_EQ(told_, Lines{"io_failed"}) << call;
    EXPECT_EQ(cm_->state(), CmConnection::State::ended);
  }
}

TEST_F(CmConnectionTest, ACallThatFailsAtOnceThrowsAndLeavesItIdle) {
  for (const char* const call :
       {"rdma_create_event_channel", "rdma_create_id", "rdma_resolve_addr"}) {
    fake_cm().fail_call = call;
    EXPECT_EQ(thrown_by([&] { connect(); }).code(), ErrorCode::io_failed) << call;
    EXPECT_EQ(cm_->state(), CmConnection::State::idle);
    EXPECT_EQ(fake_cm().identifiers, 0);
  }
  fake_cm().fail_call.clear();
  connect();
  EXPECT_EQ(thrown_by([&] { connect(); }).code(), ErrorCode::bad_state);
}

TEST_F(CmConnectionTest, APeerThatDoesNotAnswerInTimeEndsIt) {
  connect(CmExchange::descriptors, std::chrono::milliseconds(1));
  engine_.run_once(core::Clock::now() + std::chrono::seconds(10));
  turn();
  EXPECT_EQ(told_, Lines{"timed_out"});
}

TEST_F(CmConnectionTest, AConnectionThatWasStoppedMeanwhileEndsIt) {
  connect();
  connection_.stop();
  turn();
  deliver(RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(told_, Lines{"bad_state"});
}

TEST_F(CmConnectionTest, AResponseWithoutADescriptorEndsIt) {
  connect_until_response();
  deliver(RDMA_CM_EVENT_CONNECT_RESPONSE, Bytes(56));
  EXPECT_EQ(told_, Lines{"bad_message"});
  EXPECT_NE(why_.find("another program, such as rping"), std::string::npos) << why_;
  EXPECT_FALSE(connection_.connected());
}

TEST_F(CmConnectionTest, ARejectionSaysWhetherThePeerListens) {
  connect_until_response();
  deliver(RDMA_CM_EVENT_REJECTED, {}, 8);  // no such service
  EXPECT_NE(why_.find("does not listen"), std::string::npos) << why_;
  make();
  connect_until_response();
  deliver(RDMA_CM_EVENT_REJECTED, {}, 28);  // by the application
  EXPECT_NE(why_.find("listens, and rejected it"), std::string::npos) << why_;
}

TEST_F(CmConnectionTest, AcceptsARequest) {
  ConnectRequest asked(request(packed(a_peer(), "hello")), CmExchange::descriptors);
  EXPECT_EQ(asked.device_name(), "fake0");
  EXPECT_EQ(asked.peer_name(), "10.0.0.2");
  EXPECT_EQ(text_of(asked.private_data()), "hello");
  EXPECT_EQ(asked.route().port_num, 1);
  cm_->accept(std::move(asked), kLimit, bytes_of("welcome"));
  EXPECT_TRUE(connection_.connected());
  EXPECT_TRUE(fake_cm().called("rdma_accept"));
  EXPECT_TRUE(told_.empty());
  deliver(RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(told_, Lines{"connected"});
}

TEST_F(CmConnectionTest, AnAcceptThatFailsRejectsThePeer) {
  fake_cm().fail_call = "rdma_accept";
  ConnectRequest asked(request(packed(a_peer(), "")), CmExchange::descriptors);
  EXPECT_EQ(thrown_by([&] { cm_->accept(std::move(asked), kLimit); }).code(), ErrorCode::io_failed);
  EXPECT_EQ(cm_->state(), CmConnection::State::idle);
  EXPECT_EQ(fake_cm().identifiers, 0);
}

TEST_F(CmConnectionTest, ARequestWithoutADescriptorIsRefused) {
  const Bytes whole = packed(a_peer(), "hello");
  EXPECT_EQ(refusal_of({}), ErrorCode::bad_message);
  EXPECT_EQ(refusal_of(Bytes(56)), ErrorCode::bad_message);
  EXPECT_EQ(refusal_of(Bytes(whole.begin(), whole.begin() + kDescriptorBytes - 1)),
            ErrorCode::bad_message);
  Bytes cut_off = whole;
  cut_off[kDescriptorBytes] = std::byte{200};  // longer than what is there
  EXPECT_EQ(refusal_of(cut_off), ErrorCode::bad_message);
  const ConnectRequest any(request(Bytes(7)), CmExchange::parameters);
  EXPECT_EQ(any.private_data().size(), 7U);
}

TEST_F(CmConnectionTest, TooMuchPrivateDataIsRefused) {
  const Bytes most(kMaxPrivateData);
  const Bytes more(kMaxPrivateData + 1);
  EXPECT_EQ(thrown_by([&] {
              cm_->connect({"10.0.0.2", 1}, kLimit, more);
            }).code(),
            ErrorCode::invalid_value);
  cm_->connect({"10.0.0.2", 1}, kLimit, most);
}

TEST_F(CmConnectionTest, AListenerRejectsAndLogsWhatItCannotTake) {
  const support::LogCapture log;
  int requests = 0;
  const CmListener listener(engine_, {"10.0.0.1", 0}, [&](const ConnectRequest&) {
    if (++requests == 2) throw core::Error(ErrorCode::full, "no room for another");
  });
  EXPECT_EQ(listener.port(), 7174);
  const auto arrive = [&](Bytes data) {
    fake_cm().deliver(RDMA_CM_EVENT_CONNECT_REQUEST, std::move(data), 0,
                      fake_cm().make_requested());
    turn();
  };
  arrive(packed(a_peer(), ""));
  EXPECT_EQ(requests, 1);
  arrive(Bytes(56));
  EXPECT_EQ(requests, 1);
  EXPECT_TRUE(log.has("a peer is rejected"));
  EXPECT_TRUE(log.has("another program, such as rping"));
  EXPECT_TRUE(log.has("expected the descriptor of a connection"));
  arrive(packed(a_peer(), ""));
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(fake_cm().identifiers, 1);  // the listener's own
  fake_cm().deliver(RDMA_CM_EVENT_DEVICE_REMOVAL);
  turn();
  EXPECT_TRUE(log.has("peers can no longer connect"));
}

TEST_F(CmConnectionTest, AListenerThatCannotListenIsAnError) {
  for (const char* const call : {"rdma_bind_addr", "rdma_listen"}) {
    fake_cm().fail_call = call;
    fake_cm().fail_with = EADDRINUSE;
    EXPECT_EQ(thrown_by([&] {
                const CmListener listener(engine_, {"10.0.0.1", 1}, {});
              }).code(),
              ErrorCode::in_use);
  }
}

}  // namespace
}  // namespace offload::rdma
