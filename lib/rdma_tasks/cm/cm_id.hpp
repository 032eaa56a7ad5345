#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "progress/engine.hpp"
#include "rdma/verbs/error.hpp"
#include "rdma/verbs/gid.hpp"

/// librdmacm's identifiers, events, addresses and routes (rdma_cm(7)).
namespace offload::rdma {

/// An address to listen or connect at: a numeric IPv4 or IPv6 address, with the scope of a
/// link-local one ("fe80::1%eth0"), and a port.
struct CmAddress {
  std::string address;
  std::uint16_t port = 0;

  /// Throws Error (invalid_value) for a name, or a scope that is not there.
  [[nodiscard]] sockaddr_storage native() const;
};

/// The local device, port and GID of a connection.
struct Route {
  std::string device;
  std::uint8_t port_num = 1;
  GidRule gid;  ///< the one GID of the route, if librdmacm knows it

  /// The route of an identifier that is bound to a device.
  static Route of(const rdma_cm_id& id);
};

/// A copy of an rdma_cm_event, which is acknowledged (rdma_get_cm_event(3)).
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_CONNECT_ERROR;
  int status = 0;            ///< of an error: an errno, or the reason of a rejection
  rdma_cm_id* id = nullptr;  ///< of a connection request: a new identifier, which the handler owns
  std::vector<std::byte> private_data;  ///< the peer's, padded with zeroes
};

/// Receives the events of an identifier, on the engine's thread.
class CmEventHandler {
 public:
  virtual void on_cm_event(const CmEvent& event) = 0;

 protected:
  ~CmEventHandler() = default;
};

using NativeCmId = Handle<rdma_cm_id, rdma_destroy_id>;

/// An identifier of librdmacm (rdma_cm_id) with a separate event channel, watched by an engine,
/// which outlives it. Used by the engine's thread only; its handler must not destroy it during an
/// event.
class CmId final : progress::EventHandler {
 public:
  /// `requested`: the identifier of a connection request; without one, makes a new. Throws Error.
  CmId(progress::Engine& engine, CmEventHandler& handler, NativeCmId requested = {});
  CmId& operator=(CmId&&) = delete;
  ~CmId();

  [[nodiscard]] rdma_cm_id* get() const noexcept { return id_.get(); }

 private:
  void on_events(std::uint32_t epoll_events) override;

  struct ChannelDeleter {
    void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
  };

  progress::Engine* engine_;
  CmEventHandler* handler_;
  std::unique_ptr<rdma_event_channel, ChannelDeleter> channel_;
  NativeCmId id_;
};

}  // namespace offload::rdma
