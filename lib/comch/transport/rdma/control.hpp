#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comch/transport/control_connection.hpp"
#include "comch/transport/rdma/adapter.hpp"
#include "comch/transport/rdma/data.hpp"
#include "memory/inventory.hpp"
#include "progress/task_pool.hpp"
#include "rdma/cm/cm_connection.hpp"

namespace offload::comch {

// The transport "rdma": a queue pair for the control messages, which librdmacm connects
// (rdma_cm(7)), and one for the data of each channel. It takes a key.

/// Throws Error: not_supported where there is no RDMA device, not_permitted without a key,
/// not_found, timed_out, not_connected.
std::unique_ptr<ControlConnection> connect_rdma(const Address& address);
/// Throws Error: not_supported, not_permitted as connect_rdma, in_use.
std::unique_ptr<Listener> listen_rdma(const Address& address);

/// The socket addresses of `address`. `passive`: to listen. Throws Error: not_supported where there
/// is no RDMA device, not_permitted without a key, not_found.
std::vector<net::SocketAddress> socket_addresses_of(const Address& address, bool passive);
/// `address` for librdmacm, with its scope if it is a link-local one.
inline rdma::CmAddress cm_address_of(const net::SocketAddress& address) {
  return {address.host(), address.port()};
}

/// A control connection over RDMA: a SEND for each message. It has an engine of its own, whose
/// descriptor stands for it as a socket's would.
class RdmaControlConnection final : public NetworkControlConnection {
 public:
  /// Not connected. Throws Error.
  RdmaControlConnection(std::shared_ptr<Adapter> adapter, const rdma::PathOptions& path,
                        std::string peer_name, const net::SocketAddress& source = {});
  /// What was sent is given some time to arrive.
  ~RdmaControlConnection() override;

  /// Waits until it is connected, for about `limit`. Throws Error.
  void connect(const rdma::CmAddress& to, core::Duration limit);
  /// Throws Error.
  void accept(rdma::ConnectRequest request) {
    link_.accept(std::move(request), kHandshakeTime);
    is_server_ = true;
  }
  /// For one connection of those that share an adapter. Throws Error.
  void log_device_events() { events_ = log_events(adapter_->device, engine_); }

  std::optional<ControlMessage> receive() override;
  [[nodiscard]] int fd() const noexcept override { return engine_.fd(); }
  [[nodiscard]] std::string peer_name() const override { return peer_name_; }
  /// Both descriptors, the worker's first.
  [[nodiscard]] std::vector<std::byte> endpoints() const override;
  [[nodiscard]] net::SocketAddress source() const override { return source_; }
  [[nodiscard]] bool lingers() const noexcept override { return true; }
  void abandon() noexcept override { abandoned_ = true; }
  /// On the same adapter, whose events are logged once for all.
  [[nodiscard]] std::unique_ptr<NetworkControlConnection> connect_another(
      const Address& address) const override;
  [[nodiscard]] std::unique_ptr<SlotPath> request_slot_path(protocol::AttachChannel request,
                                                            const kernels::ChannelView& channel,
                                                            progress::Engine& engine) override;
  [[nodiscard]] std::unique_ptr<DataEndpoint> grant_slot_endpoint(
      const protocol::AttachChannel& request, const kernels::ChannelView& channel) override;

 private:
  using State = progress::Context::State;

  void send_frame(std::span<const std::byte> frame) override;
  std::vector<std::byte> open_data_endpoint(std::uint32_t depth) override {
    data_endpoint_ = std::make_unique<RdmaDataEndpoint>(adapter_, path_, depth);
    return data_endpoint_->descriptor();
  }
  std::unique_ptr<DataEndpoint> connect_data_endpoint(std::span<const std::byte> peer) override {
    data_endpoint_->connect(peer);
    return std::move(data_endpoint_);
  }

  void post_receive(rdma::ReceiveTask& task) noexcept;
  void send_waiting();
  void end();
  void fail(const std::string& reason) {
    if (failure_.empty()) failure_ = reason;
  }

  template <class Task, void (RdmaControlConnection::*done)(Task&)>
  typename progress::TaskPool<Task>::Callbacks callbacks();
  void on_sent(rdma::SendTask& task);
  /// Posted again once it is read: a peer that floods fills the receives there are, and no more.
  void on_received(rdma::ReceiveTask& task) { unread_.push_back(&task); }

  std::shared_ptr<Adapter> adapter_;
  rdma::PathOptions path_;
  std::string peer_name_;
  rdma::CmAddress server_;  ///< that it is connected to
  net::SocketAddress source_;
  bool is_server_ = false;
  bool abandoned_ = false;
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
  std::unique_ptr<RdmaDataEndpoint> data_endpoint_;  ///< open, not connected
};

}  // namespace offload::comch
