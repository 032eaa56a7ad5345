#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

/// librdmacm without a device, linked like fake_verbs: calls are counted and can fail, and a test
/// delivers the events.
namespace offload::rdma::test {

struct FakeCm {
  // The route of every identifier, and the peer's attributes.
  ibv_context* verbs = nullptr;
  ibv_gid sgid{};
  ibv_qp_attr attributes{};

  // The calls and objects so far.
  int identifiers = 0;  ///< not destroyed
  int channels = 0;
  int unacknowledged = 0;
  std::vector<std::string> calls;
  std::vector<std::byte> private_data;  ///< of the latest rdma_connect or rdma_accept
  rdma_conn_param parameters{};         ///< likewise
  rdma_cm_id* latest = nullptr;         ///< the identifier made or migrated last

  // The calls that fail.
  std::string fail_call;
  int fail_with = EIO;

  [[nodiscard]] bool called(const char* call) const;
  /// Delivers an event to the latest identifier, on its channel.
  void deliver(rdma_cm_event_type type, std::vector<std::byte> private_data = {}, int status = 0,
               rdma_cm_id* requested = nullptr);
  /// Makes an identifier as a connection request brings it, which the receiver owns.
  rdma_cm_id* make_requested();
};

FakeCm& fake_cm();
void reset_fake_cm();

}  // namespace offload::rdma::test
