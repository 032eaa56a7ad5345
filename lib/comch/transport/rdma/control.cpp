#include "comch/transport/rdma/control.hpp"

#include <utility>

#include "comch/transport/rdma/adapters.hpp"
#include "comch/transport/rdma/data.hpp"
#include "comch/transport/rdma/slots.hpp"
#include "comch/transport/tcp/control.hpp"
#include "comch/transport/tcp/listener.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "device/device.hpp"

namespace offload::comch {
namespace {

/// Returns `address`. Throws Error without an RDMA device.
const Address& require_device(const Address& address) {
  if (const std::string why = device::list_rdma_devices().why_none; !why.empty()) {
    throw core::Error(core::ErrorCode::not_supported, address.to_string() + ": " + why);
  }
  return address;
}

/// A control connection whose data endpoints are queue pairs, on the device that has the
/// connection's local address. It carries no data itself.
class RdmaControlConnection final : public StreamControlConnection {
 public:
  /// `keys`: as for StreamControlConnection.
  RdmaControlConnection(TcpStream stream, std::shared_ptr<Adapters> adapters,
                        std::shared_ptr<const Keyring> keys = nullptr)
      : StreamControlConnection(std::move(stream), connect_tcp_stream, std::move(keys)),
        adapters_(std::move(adapters)) {}

  /// Makes receive() log the events of the devices, and throw if one has failed; for one of the
  /// connections that share devices. Throws Error.
  void log_device_events() {
    watched_ = watch_all({StreamControlConnection::fd(), adapters_->fd()});
  }

  std::optional<ControlMessage> receive() override {
    if (watched_.valid()) {
      const std::string failed = adapters_->log_events();
      if (!failed.empty()) throw core::Error(core::ErrorCode::driver, failed + " has failed");
    }
    return StreamControlConnection::receive();
  }
  [[nodiscard]] int fd() const noexcept override {
    return watched_.valid() ? watched_.get() : StreamControlConnection::fd();
  }
  /// On the same devices.
  [[nodiscard]] std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const override {
    return std::make_unique<RdmaControlConnection>(connect_stream_again(address), adapters_);
  }
  void require_slots() const override { static_cast<void>(with_atomics(place().adapter->device)); }
  [[nodiscard]] std::unique_ptr<SlotPath> request_slot_path(protocol::AttachChannel request,
                                                            const kernels::ChannelView& channel,
                                                            progress::Engine& engine) override {
    const auto [adapter, path] = place();
    auto slots = std::make_unique<RdmaSlotPath>(adapter, path, channel, engine);
    request.endpoint = slots->describe();
    slots->connect(exchange_endpoints(request));
    return slots;
  }

  // The answer is sent last, because an error instead of it says why the queue pair does not
  // connect. The worker sends and writes nothing before it has a request.

  [[nodiscard]] std::unique_ptr<DataEndpoint> grant_data_endpoint(
      const protocol::AttachChannel& request, std::uint32_t depth) override {
    const auto own = open_data_endpoint(depth);
    auto endpoint = connect_data_endpoint(request.endpoint);
    send(protocol::MessageId::channel_attached, own);
    return endpoint;
  }
  [[nodiscard]] std::unique_ptr<DataEndpoint> grant_slot_endpoint(
      const protocol::AttachChannel& request, const kernels::ChannelView& channel) override {
    const auto [adapter, path] = place();
    auto endpoint = std::make_unique<RdmaSlotEndpoint>(adapter, path, channel);
    endpoint->connect(request.endpoint);
    send(protocol::MessageId::channel_attached, endpoint->describe());
    return endpoint;
  }

 private:
  [[nodiscard]] Adapters::Place place() const {
    return adapters_->find(net::local_address(StreamControlConnection::fd()));
  }
  std::vector<std::byte> open_data_endpoint(std::uint32_t depth) override {
    const auto [adapter, path] = place();
    data_endpoint_ = std::make_unique<RdmaDataEndpoint>(adapter, path, depth);
    return data_endpoint_->descriptor();
  }
  std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) override {
    if (peer.empty()) {
      throw core::Error(
          core::ErrorCode::bad_message,
          "the peer sent no queue pair, as over TCP: both sides need the same --comch");
    }
    data_endpoint_->connect(peer);
    return std::move(data_endpoint_);
  }

  std::shared_ptr<Adapters> adapters_;
  core::Fd watched_;  ///< socket and device events, if this connection logs these
  std::unique_ptr<RdmaDataEndpoint> data_endpoint_;  ///< open, not connected
};

/// The listener of "rdma"; the local address of a connection determines its device.
class RdmaListener final : public TcpListener {
 public:
  explicit RdmaListener(const Address& of)
      : TcpListener(require_device(of)),
        adapters_(std::make_shared<Adapters>(of.path_choice)),
        epoll_(watch_all({TcpListener::fd(), adapters_->fd()})) {
    require_address();
  }

  std::unique_ptr<ControlConnection> accept() override {
    adapters_->log_events();
    return TcpListener::accept();
  }
  [[nodiscard]] int fd() const noexcept override { return epoll_.get(); }

 private:
  /// Throws Error if no address can serve a peer.
  void require_address() {
    std::string reason;
    for (const net::SocketAddress& each : own_addresses()) {
      try {
        if (each.is_wildcard() && address().path_choice.device.empty()) {
          return adapters_->check_choice();
        }
        adapters_->find(each);
        return;
      } catch (const core::Error& error) {
        reason = error.what();
      }
    }
    throw core::Error(core::ErrorCode::not_supported, address().to_string() + ": " + reason);
  }
  std::unique_ptr<ControlConnection> make(TcpStream stream,
                                          std::shared_ptr<const Keyring> keys) override {
    return std::make_unique<RdmaControlConnection>(std::move(stream), adapters_, std::move(keys));
  }

  std::shared_ptr<Adapters> adapters_;
  core::Fd epoll_;  ///< of the sockets and the devices' events
};

}  // namespace

std::unique_ptr<ControlConnection> connect_rdma(const Address& address) {
  auto adapters = std::make_shared<Adapters>(require_device(address).path_choice);
  // Connects to an address of the name that an RDMA device can reach.
  TcpStream stream = connect_tcp_stream_where(
      address, [&](const net::SocketAddress& own) { static_cast<void>(adapters->find(own)); });
  core::log_info("connected to {}: {}", address.to_string(), stream.describe());
  auto connection = std::make_unique<RdmaControlConnection>(std::move(stream), std::move(adapters));
  connection->log_device_events();
  return connection;
}

std::unique_ptr<Listener> listen_rdma(const Address& address) {
  return std::make_unique<RdmaListener>(address);
}

}  // namespace offload::comch
