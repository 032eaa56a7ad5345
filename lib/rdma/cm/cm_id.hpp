#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "progress/engine.hpp"
#include "rdma/verbs/handle.hpp"

namespace offload::rdma {

/// Something that librdmacm tells, as a copy: it is acknowledged already.
struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_CONNECT_ERROR;
  int status = 0;            ///< of an error: an errno, or the reason of a rejection
  rdma_cm_id* id = nullptr;  ///< of a connection request: the new one, its receiver's to end
  std::vector<std::byte> private_data;  ///< the peer's, with zeroes behind
};

/// Takes the events of an identifier, on the engine's thread.
class CmSink {
 public:
  virtual void on_cm_event(const CmEvent& event) = 0;

 protected:
  ~CmSink() = default;
};

using NativeCmId = Handle<rdma_cm_id, rdma_destroy_id>;

/// An identifier of librdmacm with an event channel of its own, on an engine, which outlives it.
/// One thread, the engine's; it must not be ended by its sink from inside an event.
class CmId final : progress::EventHandler {
 public:
  /// A new one for a connection. Throws Error.
  CmId(progress::Engine& engine, CmSink& sink);
  /// One that a request came with. Throws Error.
  CmId(progress::Engine& engine, CmSink& sink, NativeCmId requested);
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;
  ~CmId();

  [[nodiscard]] rdma_cm_id* get() const noexcept { return id_.get(); }

 private:
  void watch();
  void on_events(std::uint32_t epoll_events) override;

  struct Channel {
    Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    ~Channel();
    rdma_event_channel* native;
  };

  progress::Engine* engine_;
  CmSink* sink_;
  Channel channel_;
  NativeCmId id_;
};

}  // namespace offload::rdma
