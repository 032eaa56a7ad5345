#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "rdma_tasks/cm/cm_id.hpp"
#include "rdma_tasks/connection.hpp"

/// Connecting by librdmacm (rdma_cm(7)): to an address and port, instead of an exchange of
/// descriptors by other means. The queue pairs stay those of the Connections.
namespace offload::rdma {

/// The most bytes of the user beside the descriptor: a connection request has 56 bytes of private
/// data (rdma_connect(3)).
inline constexpr std::size_t kMaxPrivateData = 56 - kDescriptorBytes - 1;

/// The way in which the two ends learn each other's queue pair.
enum class CmExchange : std::uint8_t {
  descriptors,  ///< by ConnectionDescriptors in the private data, between two CmConnections
  /// By the parameters of librdmacm's own messages, with any application of it, such as rping. The
  /// Connection is RC, on the port and GID of the route (ConnectRequest::route).
  parameters,
};

/// A peer's request to connect, which is rejected when it is destroyed unaccepted. Move-only.
class ConnectRequest {
 public:
  /// From an RDMA_CM_EVENT_CONNECT_REQUEST. Throws Error (bad_message, unsupported_version) for
  /// private data without the descriptor of the exchange.
  ConnectRequest(const CmEvent& event, CmExchange exchange);

  /// The device that it arrived at, which the accepting Connection must be on.
  [[nodiscard]] std::string device_name() const { return id_->verbs->device->name; }
  [[nodiscard]] Route route() const { return Route::of(*id_.get()); }
  /// The peer's address: "10.0.0.2".
  [[nodiscard]] std::string peer_name() const {
    return to_string(peer_ ? peer_->gid : id_->route.addr.addr.ibaddr.dgid);
  }
  /// The user's part, which CmExchange::parameters pads with zeroes.
  [[nodiscard]] std::span<const std::byte> private_data() const noexcept { return private_data_; }

 private:
  friend class CmConnection;
  NativeCmId id_;
  std::vector<std::byte> private_data_;
  std::optional<ConnectionDescriptor> peer_;
};

/// Listens for connection requests at an address. Used by the engine's thread only; the engine
/// outlives it.
class CmListener final : CmEventHandler {
 public:
  /// Called with each request, which may be kept and accepted later. An Error that it throws is
  /// logged, and the request is rejected.
  using OnRequest = std::function<void(ConnectRequest)>;

  /// Port 0 takes any free port. Throws Error: in_use, invalid_value, librdmacm's errors.
  CmListener(progress::Engine& engine, const CmAddress& at, OnRequest on_request,
             CmExchange exchange = CmExchange::descriptors);

  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  void on_cm_event(const CmEvent& event) override;

  OnRequest on_request_;
  CmExchange exchange_;
  core::RateLimit rejected_log_;
  CmId id_;
};

/// Connects a Connection by librdmacm, and reports when the peer disconnects or its process ends.
/// The Connection is started before connect or accept, is stopped by its owner, and outlives this.
///
/// Used by the engine's thread only; the engine outlives it. A callback must not destroy it.
class CmConnection final : CmEventHandler, progress::Pollable {
 public:
  enum class State : std::uint8_t { idle, connecting, connected, ended };
  struct Callbacks {
    std::function<void(CmConnection&)> connected;  ///< called at most once
    /// Called once, after connect or accept, with the reason of the end.
    std::function<void(CmConnection&, const core::Error& why)> ended;
  };

  CmConnection(progress::Engine& engine, Connection& connection, Callbacks callbacks);
  CmConnection& operator=(CmConnection&&) = delete;
  ~CmConnection();

  /// Begins to connect. One of the callbacks is called within `limit`. Throws Error: bad_state
  /// unless it is idle, invalid_value for more than kMaxPrivateData or an address that is a name.
  void connect(const CmAddress& to, core::Duration limit,
               std::span<const std::byte> private_data = {},
               CmExchange exchange = CmExchange::descriptors);
  /// Begins to accept a request; else like connect.
  void accept(ConnectRequest request, core::Duration limit,
              std::span<const std::byte> private_data = {});
  /// Begins to disconnect. Callbacks::ended is called once the peer has disconnected too.
  void disconnect() noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  /// The peer's user part, while it is connected.
  [[nodiscard]] std::span<const std::byte> private_data() const noexcept { return peer_data_; }

 private:
  void begin(CmExchange exchange, core::Duration limit, std::span<const std::byte> private_data);
  void connect_by_parameters();
  void on_cm_event(const CmEvent& event) override;
  void advance(const CmEvent& event);
  void establish();
  void end(const core::Error& why);
  [[nodiscard]] rdma_conn_param parameters() const;
  [[nodiscard]] int milliseconds_left() const noexcept;

  bool poll() override;
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override;
  void disarm() override {}

  progress::Engine* engine_;
  Connection* connection_;
  Callbacks callbacks_;
  CmExchange exchange_ = CmExchange::descriptors;
  State state_ = State::idle;
  core::RunTime deadline_;
  std::vector<std::byte> private_data_;  ///< of this end's CM message
  std::vector<std::byte> peer_data_;
  std::optional<ConnectionDescriptor> peer_;
  std::optional<CmId> id_;
};

}  // namespace offload::rdma
