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
#include "rdma/cm/cm_id.hpp"
#include "rdma/cm/route.hpp"
#include "rdma/connection/connection.hpp"

/// Connections by librdmacm: an address and a port instead of an exchange of one's own. It carries
/// the descriptors of both ends, and a few bytes of the user's, as private data; the queue pairs
/// stay those of the Connections.
namespace offload::rdma {

/// A user's bytes beside the descriptor, at most: a request of librdmacm carries 56 in all.
inline constexpr std::size_t kMostPrivateData = 56 - kDescriptorBytes - 1;

/// Whom one connects with.
enum class Peers : std::uint8_t {
  described,  ///< Links, which tell each other their descriptors
  /// Whoever uses librdmacm, such as rping: what its own messages tell has to do. The Connection is
  /// RC, by the port and GID of the route (ConnectRequest::route, route_to).
  any,
};

/// A peer that wants to connect. It is turned away if nobody accepts it. Move-only.
class ConnectRequest {
 public:
  /// Throws Error (bad_message, unsupported_version) for what no Link sends, unless it may be of
  /// any peer.
  ConnectRequest(const CmEvent& event, Peers peers);

  /// The device that it came in by: the Connection that is to accept it must be on that.
  [[nodiscard]] std::string device_name() const { return id_->verbs->device->name; }
  [[nodiscard]] Route route() const { return Route::of(*id_.get()); }
  /// Who asks, for people: "10.0.0.2".
  [[nodiscard]] std::string peer_name() const {
    return to_string(peer_ ? peer_->gid : id_->route.addr.addr.ibaddr.dgid);
  }
  /// Of one that is not described, with zeroes behind.
  [[nodiscard]] std::span<const std::byte> private_data() const noexcept { return private_data_; }

 private:
  friend class Link;
  NativeCmId id_;
  std::vector<std::byte> private_data_;
  std::optional<ConnectionDescriptor> peer_;
};

/// Accepts peers at an address, as many as come. One thread, that of the engine, which outlives it.
class Listener final : CmSink {
 public:
  /// Called with each request; whoever keeps it may accept it later.
  using OnRequest = std::function<void(ConnectRequest)>;

  /// Port 0 for any free one. Throws Error: in_use, invalid_value, or whatever librdmacm says.
  Listener(progress::Engine& engine, const CmAddress& at, OnRequest on_request,
           Peers peers = Peers::described);

  [[nodiscard]] std::uint16_t port() const noexcept;

 private:
  void on_cm_event(const CmEvent& event) override;

  OnRequest on_request_;
  Peers peers_;
  core::RateLimit turned_away_log_;
  CmId id_;
};

/// One end of a connection that librdmacm makes for a Connection, and watches: it tells when the
/// peer goes. The Connection is started before connect or accept, is the user's to stop, and
/// outlives the link. One thread, that of the engine, which outlives it as well; it must not be
/// destroyed from inside a callback.
class Link final : CmSink, progress::Pollable {
 public:
  enum class State : std::uint8_t { idle, connecting, connected, ended };
  /// Told once when it is connected, and once when it has ended, with the reason.
  struct Callbacks {
    std::function<void(Link&)> connected;
    std::function<void(Link&, const core::Error& why)> ended;
  };

  Link(progress::Engine& engine, Connection& connection, Callbacks callbacks);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  /// Begins to connect; a callback tells the end, after `limit` at the latest. Throws Error:
  /// bad_state unless it is idle, invalid_value for more than kMostPrivateData.
  void connect(const CmAddress& to, core::Duration limit,
               std::span<const std::byte> private_data = {}, Peers peers = Peers::described);
  /// Accepts a peer; all else as above.
  void accept(ConnectRequest request, core::Duration limit,
              std::span<const std::byte> private_data = {});
  /// Tells the peer that it is over. The end is told when the peer has said so too.
  void disconnect() noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  /// The peer's, once it is connected.
  [[nodiscard]] std::span<const std::byte> private_data() const noexcept { return peer_data_; }

 private:
  void begin(Peers peers, core::Duration limit, std::span<const std::byte> private_data);
  void connect_as_told();
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
  Peers peers_ = Peers::described;
  State state_ = State::idle;
  core::TimePoint deadline_;
  std::vector<std::byte> offer_;  ///< what goes to the peer as private data
  std::vector<std::byte> peer_data_;
  std::optional<CmId> id_;
};

}  // namespace offload::rdma
