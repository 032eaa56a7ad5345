#include "protocol/control.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "comch/transport/control_connection.hpp"
#include "comch/transport/rdma/endpoint.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "device/device.hpp"
#include "memory/inventory.hpp"
#include "net/socket.hpp"
#include "progress/task_pool.hpp"
#include "rdma/cm/cm_connection.hpp"
#include "rdma/verbs/async_events.hpp"

/// The control channel over RDMA: a queue pair of its own, which librdmacm connects, and a SEND for
/// each message. Each end has an engine of its own, whose descriptor stands for it like a socket's.
namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Messages that may come before they are looked at, and that may be under way. Of those that both
/// sides send unasked there is one a second.
constexpr std::size_t kReceives = 32;
constexpr std::size_t kSends = 32;
/// Messages that wait for the peer to be there, or to take those before.
constexpr std::size_t kMostUnsent = 64;
constexpr std::size_t kRoom = protocol::kFrameHeaderSize + protocol::kMaxControlLength;
/// Peers that connected and were not looked at.
constexpr std::size_t kMostArrived = 16;
/// What a last message is granted to arrive before its queue pair goes.
constexpr core::Duration kLinger = std::chrono::milliseconds(50);

/// Others can always reach it, so there has to be a key.
void check_usable(const Address& address) {
  if (const std::string why = device::why_no_rdma(); !why.empty()) {
    throw Error(ErrorCode::not_supported, address.to_string() + ": " + why);
  }
  if (!address.key.empty()) return;
  throw Error(ErrorCode::not_permitted,
              address.to_string() + " can be reached by others: it takes a key (--comch-key-file)");
}

rdma::CmAddress resolve(const Address& address, bool passive) {
  return {net::resolve(address.host, address.port, passive).front().host(), address.port};
}

rdma::PathOptions path_by(const rdma::Route& route) {
  rdma::PathOptions path;
  path.port_num = route.port_num;
  path.gid = route.gid;
  return path;
}

rdma::ConnectionOptions options_of(const rdma::PathOptions& path) {
  rdma::ConnectionOptions options;
  static_cast<rdma::PathOptions&>(options) = path;
  options.queues.max_send_wr = kSends;
  options.queues.max_recv_wr = kReceives;
  options.queues.max_sge = 1;
  options.access = memory::Access{};  // the peer reaches no memory
  return options;
}

/// Logs what `device` tells of itself, as long as the result lives. `gone`, if there is one, is set
/// when it says that it can be used no longer.
std::unique_ptr<rdma::AsyncEvents> log_events(const rdma::DeviceContext& device,
                                              progress::Engine& engine, bool* gone = nullptr) {
  return std::make_unique<rdma::AsyncEvents>(
      device, engine, [name = device.name(), gone](const rdma::AsyncEvent& event) {
        core::log_warning("{} reports: {}", name, event.name());
        if (gone != nullptr && event.type == IBV_EVENT_DEVICE_FATAL) *gone = true;
      });
}

class RdmaControlConnection final : public ControlConnection {
 public:
  /// Throws Error.
  RdmaControlConnection(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                        std::string peer_name);
  ~RdmaControlConnection() override;

  /// Waits until it is connected. Throws Error.
  void connect(const rdma::CmAddress& to);
  void accept(rdma::ConnectRequest request) { link_.accept(std::move(request), kHandshakeTime); }
  /// For the one wire of those that share a device. Throws Error.
  void log_device_events() { events_ = log_events(adapter_->device, engine_); }

  void send(std::span<const std::byte> frame, std::span<const int> fds) override;
  std::optional<ControlMessage> receive() override;
  [[nodiscard]] int fd() const noexcept override { return engine_.fd(); }
  [[nodiscard]] std::string peer_name() const override { return peer_name_; }
  /// With the same device: what that tells of itself is logged once, and of channels as well.
  [[nodiscard]] std::unique_ptr<ControlConnection> connect_again(
      const Address& address) const override {
    auto wire = std::make_unique<RdmaControlConnection>(adapter_, path_, peer_name_);
    wire->connect(resolve(address, false));
    return wire;
  }

  std::vector<std::byte> begin_line(std::uint32_t depth) override {
    line_ = std::make_unique<RdmaDataEndpoint>(adapter_, path_, depth);
    return line_->endpoint();
  }
  std::unique_ptr<DataEndpoint> end_line(std::span<const std::byte> peer) override {
    line_->connect(peer);
    return std::move(line_);
  }

 private:
  void post_receive(rdma::ReceiveTask& task) noexcept;
  void send_waiting();
  void end();
  void turn();
  void fail(const std::string& reason) {
    if (failure_.empty()) failure_ = reason;
  }

  template <class Task, void (RdmaControlConnection::*done)(Task&)>
  typename progress::TaskPool<Task>::Callbacks callbacks();
  void sent(rdma::SendTask& task);
  void received(rdma::ReceiveTask& task);

  using State = progress::Context::State;

  std::shared_ptr<Adapter> adapter_;
  rdma::PathOptions path_;
  std::string peer_name_;
  progress::Engine engine_;
  std::unique_ptr<rdma::AsyncEvents> events_;
  rdma::CompletionLoop completions_;
  memory::MemoryRegion region_;
  memory::BufferInventory inventory_;
  std::vector<memory::BufferRef> buffers_;
  rdma::Connection connection_;
  progress::TaskPool<rdma::SendTask> sends_;
  progress::TaskPool<rdma::ReceiveTask> receives_;
  rdma::CmConnection link_;
  std::deque<std::vector<std::byte>> unsent_;
  std::deque<rdma::ReceiveTask*> unread_;
  std::string failure_;  ///< why it is over; empty while it is not
  bool armed_ = false;
  std::unique_ptr<RdmaDataEndpoint> line_;  ///< on its way
};

RdmaControlConnection::RdmaControlConnection(std::shared_ptr<Adapter> adapter,
                                             const rdma::PathOptions& path, std::string peer_name)
    : adapter_(std::move(adapter)),
      path_(path),
      peer_name_(std::move(peer_name)),
      completions_(adapter_->device, engine_, kSends + kReceives),
      region_({"control messages", memory::kLocalAccess},
              {memory::allocate_range((kSends + kReceives) * kRoom)}),
      inventory_(kSends + kReceives),
      connection_({adapter_->device, adapter_->domain, adapter_->registrar, completions_},
                  options_of(path_), "control channel"),
      sends_(connection_, kSends, callbacks<rdma::SendTask, &RdmaControlConnection::sent>()),
      receives_(connection_, kReceives,
                callbacks<rdma::ReceiveTask, &RdmaControlConnection::received>()),
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

/// What was sent is given time to go out; then nothing of this wire is under way any more.
void RdmaControlConnection::end() {
  if (armed_) engine_.disarm();
  const auto deadline = core::Clock::now() + kLinger;
  while (failure_.empty() && connection_.connected() && sends_.available() != kSends &&
         core::Clock::now() < deadline) {
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

void RdmaControlConnection::connect(const rdma::CmAddress& to) {
  link_.connect(to, kHandshakeTime);
  const auto deadline = core::Clock::now() + 2 * kHandshakeTime;  // the link has its own
  while (link_.state() == rdma::CmConnection::State::connecting && core::Clock::now() < deadline) {
    engine_.run_once(deadline);
  }
  if (link_.state() != rdma::CmConnection::State::connected) {
    throw Error(ErrorCode::not_connected, "cannot connect to " + peer_name_ + ": " + failure_);
  }
}

// ---- Sending

void RdmaControlConnection::send(std::span<const std::byte> frame, std::span<const int> fds) {
  if (!fds.empty() || frame.size() > kRoom) {
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

void RdmaControlConnection::sent(rdma::SendTask& task) {
  static_cast<void>(sends_.release(task));
  send_waiting();
}

// ---- Receiving

void RdmaControlConnection::post_receive(rdma::ReceiveTask& task) noexcept {
  task.destination->reset();
  static_cast<void>(connection_.submit(task));  // where it is not taken, the connection has ended
}

/// Posted again once it is read: a peer that floods fills the receives there are, and no more.
void RdmaControlConnection::received(rdma::ReceiveTask& task) {
  unread_.push_back(&task);
}

/// Takes all that there is.
void RdmaControlConnection::turn() {
  while (engine_.progress()) continue;
}

std::optional<ControlMessage> RdmaControlConnection::receive() {
  if (std::exchange(armed_, false)) engine_.disarm();
  turn();
  if (unread_.empty() && failure_.empty()) {
    engine_.arm();
    armed_ = true;
    turn();  // what came before
  }
  if (!unread_.empty()) {
    engine_.notify();  // whoever takes only some is called for the rest
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

// ---- Where they come in

class RdmaListener final : public Listener {
 public:
  explicit RdmaListener(const Address& address)
      : listener_(engine_, resolve(address, true),
                  [this](rdma::ConnectRequest request) { take(std::move(request)); }) {}

  std::unique_ptr<ControlConnection> accept() override;
  [[nodiscard]] int fd() const noexcept override { return engine_.fd(); }
  [[nodiscard]] std::uint16_t port() const noexcept override { return listener_.port(); }

 private:
  /// A device that is open for peers, and what it tells of itself.
  struct Entry {
    std::shared_ptr<Adapter> adapter;
    std::unique_ptr<rdma::AsyncEvents> events;
    bool gone = false;  ///< removed or reset: whoever comes by it next opens it anew
  };

  void take(rdma::ConnectRequest request);
  std::shared_ptr<Adapter> adapter_of(const std::string& device);

  progress::Engine engine_;
  std::map<std::string, Entry> adapters_;  ///< by device
  std::deque<std::unique_ptr<ControlConnection>> arrived_;
  rdma::CmListener listener_;
  bool armed_ = false;
};

/// What it throws, the listener logs; and it turns the peer away.
void RdmaListener::take(rdma::ConnectRequest request) {
  if (arrived_.size() == kMostArrived) {
    throw Error(ErrorCode::full, "too many wait for the control thread");
  }
  const rdma::Route route = request.route();
  auto wire = std::make_unique<RdmaControlConnection>(adapter_of(route.device), path_by(route),
                                                      request.peer_name());
  wire->accept(std::move(request));
  arrived_.push_back(std::move(wire));
}

std::shared_ptr<Adapter> RdmaListener::adapter_of(const std::string& device) {
  Entry& entry = adapters_[device];
  if (!entry.adapter || entry.gone) {
    auto adapter = std::make_shared<Adapter>(device);
    entry.events = log_events(adapter->device, engine_, &entry.gone);
    entry.adapter = std::move(adapter);
    entry.gone = false;
  }
  return entry.adapter;
}

std::unique_ptr<ControlConnection> RdmaListener::accept() {
  if (std::exchange(armed_, false)) engine_.disarm();
  while (arrived_.empty() && engine_.progress()) continue;
  if (arrived_.empty()) {
    engine_.arm();
    armed_ = true;
    while (arrived_.empty() && engine_.progress()) continue;
  }
  if (arrived_.empty()) return nullptr;
  engine_.notify();  // whoever takes only some is called for the rest
  auto wire = std::move(arrived_.front());
  arrived_.pop_front();
  return wire;
}

}  // namespace

std::unique_ptr<ControlConnection> connect_rdma(const Address& address) {
  check_usable(address);
  const rdma::CmAddress to = resolve(address, false);
  const rdma::Route route = rdma::route_to(to, kHandshakeTime);
  auto wire = std::make_unique<RdmaControlConnection>(std::make_shared<Adapter>(route.device),
                                                      path_by(route), address.to_string());
  wire->log_device_events();
  wire->connect(to);
  return wire;
}

std::unique_ptr<Listener> listen_rdma(const Address& address) {
  check_usable(address);
  return std::make_unique<RdmaListener>(address);
}

}  // namespace offload::comch
