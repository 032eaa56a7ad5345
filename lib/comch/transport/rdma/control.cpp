#include "comch/transport/rdma/control.hpp"

#include <algorithm>
#include <utility>

#include "comch/transport/rdma/slots.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "device/device.hpp"
#include "net/every_address.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Messages that may come before they are read, and that may be under way. A keep-alive a second is
/// the only message that answers none.
constexpr std::size_t kReceives = 32;
constexpr std::size_t kSends = 32;
/// Messages that wait until the peer is connected, or has received those before.
constexpr std::size_t kMostUnsent = 64;
constexpr std::size_t kRoom = protocol::kFrameHeaderSize + protocol::kMaxControlLength;
/// The time that a last message is given to arrive before its queue pair is destroyed.
constexpr core::Duration kLinger = std::chrono::milliseconds(50);

rdma::ConnectionOptions control_options(const rdma::PathOptions& path) {
  rdma::ConnectionOptions options;
  static_cast<rdma::PathOptions&>(options) = path;
  options.queues.max_send_wr = kSends;
  options.queues.max_recv_wr = kReceives;
  options.queues.max_sge = 1;
  options.access = memory::Access{};  // the peer reaches no memory
  return options;
}

}  // namespace

std::vector<net::SocketAddress> socket_addresses_of(const Address& address, bool passive) {
  if (const std::string why = device::list_rdma_devices().why_none; !why.empty()) {
    throw Error(ErrorCode::not_supported, address.to_string() + ": " + why);
  }
  address.require_key();
  return net::resolve(address.host, address.port, passive);
}

RdmaControlConnection::RdmaControlConnection(std::shared_ptr<Adapter> adapter,
                                             const rdma::PathOptions& path, std::string peer_name,
                                             const net::SocketAddress& source)
    : adapter_(std::move(adapter)),
      path_(path),
      peer_name_(std::move(peer_name)),
      source_(source),
      completions_(adapter_->device, engine_, kSends + kReceives),
      region_({"control messages", memory::kLocalAccess},
              {memory::allocate_range((kSends + kReceives) * kRoom)}),
      inventory_(kSends + kReceives),
      connection_({adapter_->device, adapter_->domain, adapter_->registrar, completions_},
                  control_options(path_), "control channel"),
      sends_(connection_, kSends, callbacks<rdma::SendTask, &RdmaControlConnection::on_sent>()),
      receives_(connection_, kReceives,
                callbacks<rdma::ReceiveTask, &RdmaControlConnection::on_received>()),
      link_(engine_, connection_,
            {[this](rdma::CmConnection&) { send_waiting(); },
             [this](rdma::CmConnection&, const Error& why) {
               fail(why.code() == ErrorCode::connection_reset
                        ? "the peer closed the control channel"
                        : why.what());
             }}) {
  region_.add_registrar(adapter_->registrar);
  region_.start();
  inventory_.start();
  connection_.connect(engine_);
  connection_.start();
  for (std::size_t i = 0; i < kSends + kReceives; ++i) {
    const std::span room(region_.ranges()[0].address + i * kRoom, kRoom);
    buffers_.push_back(inventory_.take(region_, room).buffer);
  }
  for (std::size_t i = 0; i < kReceives; ++i) {
    rdma::ReceiveTask& task = *receives_.allocate();
    task.destination = buffers_[i].get();
    post_receive(task);
  }
  for (std::size_t i = 0; i < kSends; ++i) {
    sends_.tasks()[i].source = buffers_[kReceives + i].get();
  }
}

RdmaControlConnection::~RdmaControlConnection() {
  try {
    end();
  } catch (const Error& error) {
    core::log_error("the control channel did not end cleanly: {}", error.what());
  }
}

std::vector<std::byte> RdmaControlConnection::endpoints() const {
  if (!link_.peer()) return {};
  const auto own = connection_.descriptor().encode();
  const auto peer = link_.peer()->encode();
  std::vector<std::byte> both = is_server_ ? peer : own;
  const auto& server = is_server_ ? own : peer;
  both.insert(both.end(), server.begin(), server.end());
  return both;
}

/// What was sent is given time to go out; then no work of this connection is under way any more.
void RdmaControlConnection::end() {
  if (armed_) engine_.disarm();
  const auto deadline = core::Clock::now() + kLinger;
  while (!abandoned_ && failure_.empty() && connection_.connected() &&
         sends_.available() != kSends && core::Clock::now() < deadline) {
    engine_.run_once(deadline);
  }
  link_.disconnect();
  if (connection_.state() == State::running) connection_.stop();
  while (connection_.state() != State::idle) engine_.run_once(core::Clock::now() + kLinger);
}

template <class Task, void (RdmaControlConnection::*done)(Task&)>
typename progress::TaskPool<Task>::Callbacks RdmaControlConnection::callbacks() {
  return {[](Task& task, void* self) { (static_cast<RdmaControlConnection*>(self)->*done)(task); },
          [](Task& task, void* self) {
            static_cast<RdmaControlConnection*>(self)->fail("the control channel broke: " +
                                                            task.explain());
          },
          this};
}

void RdmaControlConnection::connect(const rdma::CmAddress& to, core::Duration limit) {
  server_ = to;
  link_.connect(to, limit);
  const auto deadline = core::Clock::now() + 2 * limit;  // the link has its own
  while (link_.state() == rdma::CmConnection::State::connecting && core::Clock::now() < deadline) {
    engine_.run_once(deadline);
  }
  if (link_.state() != rdma::CmConnection::State::connected) {
    throw Error(ErrorCode::not_connected, "cannot connect to " + peer_name_ + ": " + failure_);
  }
}

std::unique_ptr<NetworkControlConnection> RdmaControlConnection::connect_another(
    const Address&) const {
  auto connection = std::make_unique<RdmaControlConnection>(adapter_, path_, peer_name_);
  connection->connect(server_, kHandshakeTime);  // the name may be that of several servers
  return connection;
}

std::unique_ptr<SlotPath> RdmaControlConnection::request_slot_path(
    protocol::AttachChannel request, const kernels::ChannelView& channel,
    progress::Engine& engine) {
  auto path = std::make_unique<RdmaSlotPath>(adapter_, path_, channel, engine);
  request.endpoint = path->describe();
  path->connect(exchange_endpoints(request));
  return path;
}

/// The worker writes nothing before it has a request.
std::unique_ptr<DataEndpoint> RdmaControlConnection::grant_slot_endpoint(
    const protocol::AttachChannel& request, const kernels::ChannelView& channel) {
  auto endpoint = std::make_unique<RdmaSlotEndpoint>(adapter_, path_, channel);
  send(protocol::MessageId::channel_attached, endpoint->describe());
  endpoint->connect(request.endpoint);
  return endpoint;
}

// ---- Sending

void RdmaControlConnection::send_frame(std::span<const std::byte> frame) {
  if (frame.size() > kRoom) {
    throw Error(ErrorCode::invalid_value, "a message that cannot go over RDMA");
  }
  if (!failure_.empty()) throw Error(ErrorCode::connection_reset, failure_);
  if (unsent_.size() == kMostUnsent) {
    throw Error(ErrorCode::timed_out, "the peer does not read its messages");
  }
  unsent_.emplace_back(frame.begin(), frame.end());
  if (link_.state() == rdma::CmConnection::State::connected) send_waiting();
}

/// As far as there is room. The others go when these have arrived.
void RdmaControlConnection::send_waiting() {
  while (!unsent_.empty()) {
    rdma::SendTask* const task = sends_.allocate();
    if (task == nullptr) return;
    const auto frame = std::move(unsent_.front());
    unsent_.pop_front();
    memory::Buffer& buffer =
        *buffers_[kReceives + static_cast<std::size_t>(task - sends_.tasks().data())];
    std::copy(frame.begin(), frame.end(), buffer.dataroom().begin());
    static_cast<void>(buffer.set_data(0, frame.size()));
    if (const core::Status status = connection_.submit(*task); !status.ok()) {
      static_cast<void>(sends_.release(*task));
      return fail("the control channel takes no message: " + std::string(describe(status.error())));
    }
  }
}

void RdmaControlConnection::on_sent(rdma::SendTask& task) {
  static_cast<void>(sends_.release(task));
  send_waiting();
}

// ---- Receiving

void RdmaControlConnection::post_receive(rdma::ReceiveTask& task) noexcept {
  task.destination->reset();
  static_cast<void>(connection_.submit(task));  // where it is not taken, the connection has ended
}

std::optional<ControlMessage> RdmaControlConnection::receive() {
  if (std::exchange(armed_, false)) engine_.disarm();
  while (engine_.progress()) continue;
  if (unread_.empty() && failure_.empty()) {
    engine_.arm();
    armed_ = true;
    while (engine_.progress()) continue;  // what came before
  }
  if (!unread_.empty()) {
    engine_.notify();  // a caller that takes only some is called again for the rest
    rdma::ReceiveTask& task = *unread_.front();
    unread_.pop_front();
    const auto frame = task.destination->data();
    const std::vector<std::byte> packet(frame.begin(), frame.end());
    post_receive(task);
    return parse_packet(packet);
  }
  if (!failure_.empty()) throw Error(ErrorCode::connection_reset, failure_);
  return std::nullopt;
}

std::unique_ptr<ControlConnection> connect_rdma(const Address& address) {
  const auto addresses = socket_addresses_of(address, false);
  return net::connect_to_any(addresses, core::Clock::now() + 2 * kHandshakeTime,
                             [&](const net::SocketAddress& at, core::TimePoint until) {
                               const rdma::CmAddress to = cm_address_of(at);
                               const core::Duration step = (until - core::Clock::now()) / 2;
                               const rdma::Route route = rdma::route_to(to, step);
                               auto connection = std::make_unique<RdmaControlConnection>(
                                   std::make_shared<Adapter>(route.device), path_of(route),
                                   address.to_string() + " at " + at.to_string());
                               connection->log_device_events();
                               connection->connect(to, step);
                               return std::unique_ptr<ControlConnection>(std::move(connection));
                             });
}

}  // namespace offload::comch
