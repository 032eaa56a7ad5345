#include <algorithm>
#include <utility>

#include "comch/transport/transport.hpp"
#include "tests/comch/conformance/suite.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch::conformance {
namespace {

using protocol::DataHeader;
using protocol::MessageId;
using support::Bytes;
using support::random_bytes;

/// Makes a data connection as a worker does.
std::unique_ptr<DataEndpoint> request_endpoint(const Address& address,
                                               const protocol::AttachChannel& request) {
  const auto connection = connect_to(address);
  return dynamic_cast<NetworkControlConnection&>(*connection)
      .request_data_endpoint(request, kDepth);
}

/// Returns a worker's control connection after its greeting, and its valid request for the first
/// channel.
std::pair<std::unique_ptr<ControlConnection>, protocol::AttachChannel> greet(
    const Address& address) {
  auto worker = connect_to(address);
  worker->send(MessageId::hello, hello().encode());
  EXPECT_EQ(worker->await().id, MessageId::welcome);
  const auto offered = protocol::ChannelDescriptor::decode(worker->await().payload);
  protocol::AttachChannel request{offered.value().channel};
  EXPECT_EQ(offered->access.size(), request.token.size());
  std::copy(offered->access.begin(), offered->access.end(), request.token.begin());
  return {std::move(worker), request};
}

/// A worker that takes every request, and answers arbitrarily.
class Liar final : DataHandler {
 public:
  explicit Liar(const Address& address);

  void say(const DataHeader& header) {
    const auto* const in_slot = reinterpret_cast<const std::byte*>(view_.response(0).plain());
    connection_->post_send(header,
                           header.length > kernels::kMaxPacketPayload ? in_slot : payload_.data());
  }
  /// Returns whether its messages are lost: over RDMA, an unexpected one finds no receive.
  [[nodiscard]] bool failed() const { return connection_->failed(); }
  /// Runs it until `count` requests have come, and its messages are sent.
  void run_until_asked(std::size_t count) {
    EXPECT_TRUE(support::eventually([&] { return asked_ == count; }, [this] { turn(); }));
  }
  void turn() { engine_.run_once(core::Clock::now() + std::chrono::milliseconds(1)); }

 private:
  bool post_sends() override { return false; }
  void on_sent(std::size_t) override {}
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(view_.request(sequence).plain());
  }
  bool on_received(const DataHeader&, std::span<const std::byte>) override {
    ++asked_;
    return true;
  }
  void on_receives_done() override {}

  channel::ChannelMemory own_{0, kDepth, kLongest, -1};
  kernels::ChannelView view_ = own_.endpoint().view;
  Bytes payload_ = random_bytes(kernels::kMaxPacketPayload, 1);
  std::size_t asked_ = 0;
  progress::Engine engine_;
  std::unique_ptr<ControlConnection> control_;
  std::vector<std::unique_ptr<DataEndpoint>> endpoints_;
  std::unique_ptr<DataConnection> connection_;
};

Liar::Liar(const Address& address) : control_(connect_to(address)) {
  control_->send(MessageId::hello, hello().encode());
  EXPECT_EQ(control_->await().id, MessageId::welcome);
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    const auto offered = protocol::ChannelDescriptor::decode(control_->await().payload);
    protocol::AttachChannel request{channel};
    std::copy(offered->access.begin(), offered->access.end(), request.token.begin());
    endpoints_.push_back(request_endpoint(address, request));
  }
  connection_ = endpoints_.front()->start(engine_, view_, *this, kDepth);
  for (std::uint32_t channel = 0; channel < kChannels; ++channel) {
    const protocol::ExchangeConsumerId id{channel, channel};
    control_->send(MessageId::exchange_consumer_id_request, id.encode());
    EXPECT_EQ(control_->await().id, MessageId::exchange_consumer_id_response);
  }
}

struct Lie {
  const char* what;
  std::size_t asked;  ///< of it, in a slot each, before it lies
  std::vector<DataHeader> said;
};

}  // namespace

// Each lie costs the liar its connection, at either end; a real worker then answers the requests.
TEST_P(Lies, CostTheLiarItsSession) {
  const std::vector<Lie> lies{
      {"a response that nobody asked for", 0, {{0, 10, 0}}},
      {"another one's", 2, {{1, 10, 0}}},
      {"one twice", 1, {{0, 10, 0}, {0, 10, 0}}},
      {"one of a lap to come", 1, {{kDepth, 10, 0}}},
      {"the last number there is", 1, {{~std::uint64_t{0}, 10, 0}}},
      {"longer than the channel's", 1, {{0, kLongest + 1, 0}}},
      {"a batch without its messages", 1, {{0, 5, 3}}},
      {"one of too many", 1, {{0, 200, kernels::kMaxBatchCount + 1}}},
      {"one longer than a slot's", 1, {{0, kernels::kMaxBatchContent + 1, 3}}},
  };
  std::uint32_t seed = 0;
  for (const Lie& lie : lies) {
    SCOPED_TRACE(lie.what);
    std::vector<Bytes> requests;
    for (std::size_t i = 0; i < lie.asked; ++i) requests.push_back(random_bytes(kAlone, ++seed));
    ASSERT_EQ(post(0, requests), lie.asked);
    {
      Liar liar(server_->address());
      liar.run_until_asked(lie.asked);
      for (const DataHeader& header : lie.said) liar.say(header);
      EXPECT_TRUE(support::eventually(
          [&] {
            return liar.failed() ||
                   server_->with([](ServerSide& side) { return !side.connection_lost.empty(); });
          },
          [&] { liar.turn(); }));
    }
    ASSERT_TRUE(server_->eventually([](ServerSide& side) {
      side.connection_lost.clear();
      return side.attached == side.lost;
    }));
    const WorkerSide honest(server_->address());
    EXPECT_EQ(responses(0, lie.asked).size(), lie.asked);
    expect_served(kDepth, 400, seed += 100);
  }
}

// A token belongs to one session, a channel to one data connection.
TEST_P(Lies, AStrangersTokenAttachesNothing) {
  const WorkerSide worker(server_->address());
  protocol::AttachChannel request{0};
  EXPECT_THROW(static_cast<void>(request_endpoint(server_->address(), request)), core::Error);
  expect_served(2, 100, 1);
}

// It attaches nothing even while a worker is expected to attach that very channel.
TEST_P(Lies, AStrangersTokenIsNotTheOneThatIsExpected) {
  const Address address = server_->address();
  auto [worker, request] = greet(address);
  const auto [another, others] = greet(address);
  EXPECT_NE(request.token, protocol::Token{});
  EXPECT_NE(request.token, others.token);
  request.token.back() ^= std::byte{1};
  EXPECT_THROW(static_cast<void>(request_endpoint(address, request)), core::Error);
  request.token.back() ^= std::byte{1};
  EXPECT_NO_THROW(static_cast<void>(request_endpoint(address, request)));
}

// The channel that it was offered it may still attach, but no other one is made for it.
TEST_P(Lies, AWorkerThatIsToldToStopIsOfferedNoFurtherChannel) {
  const Address address = server_->address();
  auto [worker, request] = greet(address);
  server_->with([](ServerSide& side) {
    side.session->start_shutdown(protocol::ShutdownReason::together);
    return 0;
  });
  EXPECT_EQ(worker->await().id, MessageId::start_shutdown);
  static_cast<void>(request_endpoint(address, request));
  for (int turns = 0; turns < 3; ++turns) server_->with([](ServerSide&) { return 0; });
  worker->send(MessageId::shutdown_complete, {});
  const auto end = support::thrown_by([&, &worker = worker] {
    while (true) EXPECT_NE(worker->await().id, MessageId::channel_descriptor);
  });
  EXPECT_EQ(end.code(), core::ErrorCode::connection_reset);
}

// The server sends the reason; over TCP, where nothing has to be connected, after its answer.
TEST_P(Lies, AnEndpointThatIsNoneAttachesNothing) {
  const Address address = server_->address();
  auto [worker, request] = greet(address);
  request.endpoint = {std::byte{1}};
  const auto channel = connect_to(address);
  channel->send(MessageId::attach_channel, request.encode());
  ControlMessage answer = channel->await();
  if (address.scheme != "rdma" && answer.id == MessageId::channel_attached)
    answer = channel->await();
  ASSERT_EQ(answer.id, MessageId::error);
  EXPECT_EQ(protocol::parse_error(answer.payload).code, protocol::Refusal::busy);
  const auto end = support::thrown_by([&, &worker = worker] {
    while (true) worker->await();
  });
  EXPECT_EQ(end.code(), core::ErrorCode::connection_reset);
  const WorkerSide honest(address);
  expect_served(2, 100, 1);
}

}  // namespace offload::comch::conformance
