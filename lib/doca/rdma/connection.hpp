#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "doca/rdma/endpoint.hpp"
#include "rdma_tasks/cm/cm_connection.hpp"
#include "rdma_tasks/connection.hpp"

/// An rdma::Connection, and how it was connected.
struct doca_rdma_connection {
  enum class State : std::uint8_t {
    requested,   ///< by a peer, and not answered yet
    exported,    ///< its queues are there
    connecting,  ///< by librdmacm
    connected,
    ended,  ///< disconnected, or it failed to connect
  };

  explicit doca_rdma_connection(doca_rdma& owner) : rdma(&owner) {}
  doca_rdma_connection& operator=(doca_rdma_connection&&) = delete;

  /// Returns whether tasks can be submitted to it.
  [[nodiscard]] bool is_usable() const noexcept {
    return state == State::connected && !stops && connection && connection->connected();
  }

  doca_rdma* rdma;
  State state = State::exported;
  std::optional<offload::rdma::ConnectRequest> request;
  std::optional<offload::rdma::Connection> connection;  ///< unless it is only requested
  std::optional<offload::rdma::CmConnection> cm;        ///< if librdmacm connects it
  std::vector<std::byte> descriptor;                    ///< as exported
  std::size_t tasks = 0;                                ///< allocated tasks of it
  bool stops = false;       ///< it stops in the next turn, or has stopped
  bool given_back = false;  ///< the program has disconnected or rejected it
  doca_data user_data{};
};

/// A listener of librdmacm at a port.
struct offload::doca::RdmaEndpoint::Listener {
  std::uint16_t port = 0;
  std::optional<offload::rdma::CmListener> at;
  bool ends = false;  ///< in the next turn
};
