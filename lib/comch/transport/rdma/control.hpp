#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comch/transport/rdma/adapters.hpp"
#include "comch/transport/rdma/data.hpp"
#include "comch/transport/tcp/stream_connection.hpp"

namespace offload::comch {

// The transport "rdma": control connections as those of the transport "tcp", over which two sides
// exchange the descriptions of the queue pairs that carry a channel's data. It requires a key.

/// Connects to a server. Throws Error: not_supported without an RDMA device, and as connect_tcp().
std::unique_ptr<ControlConnection> connect_rdma(const Address& address);
/// Listens. Throws Error: not_supported if no RDMA device has the address, and as listen_tcp().
std::unique_ptr<Listener> listen_rdma(const Address& address);

/// A control connection whose data endpoints are queue pairs, on the device that has the
/// connection's local address. It carries no data itself.
class RdmaControlConnection final : public StreamControlConnection {
 public:
  /// `keys`: as for StreamControlConnection.
  RdmaControlConnection(TcpStream stream, std::shared_ptr<Adapters> adapters,
                        std::shared_ptr<const Keyring> keys = nullptr);
  /// Makes receive() log the events of the devices; for one of the connections that share devices.
  /// Throws Error.
  void log_device_events();

  std::optional<ControlMessage> receive() override;
  [[nodiscard]] int fd() const noexcept override;
  /// On the same devices.
  [[nodiscard]] std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const override;
  void require_slots() const override;
  [[nodiscard]] std::unique_ptr<SlotPath> request_slot_path(protocol::AttachChannel request,
                                                            const kernels::ChannelView& channel,
                                                            progress::Engine& engine) override;
  [[nodiscard]] std::unique_ptr<DataEndpoint> grant_data_endpoint(
      const protocol::AttachChannel& request, std::uint32_t depth) override;
  [[nodiscard]] std::unique_ptr<DataEndpoint> grant_slot_endpoint(
      const protocol::AttachChannel& request, const kernels::ChannelView& channel) override;

 private:
  [[nodiscard]] Adapters::Place place() const;
  std::vector<std::byte> open_data_endpoint(std::uint32_t depth) override;
  std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) override;

  std::shared_ptr<Adapters> adapters_;
  core::Fd watched_;  ///< socket and device events, if this connection logs these
  std::unique_ptr<RdmaDataEndpoint> data_endpoint_;  ///< open, not connected
};

}  // namespace offload::comch
