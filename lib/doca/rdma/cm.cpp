#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "doca/rdma/rdma.hpp"
#include "rdma/verbs/gid.hpp"

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::core::Error;
using offload::core::ErrorCode;
using offload::rdma::CmAddress;
using offload::rdma::CmConnection;
using offload::rdma::CmListener;
using offload::rdma::ConnectRequest;
using State = doca_rdma_connection::State;

struct doca_rdma_addr {
  CmAddress address;
};

namespace {

/// The time that a peer has for its answers.
constexpr offload::core::Duration kConnectTime = std::chrono::seconds(10);

CmAddress address_of(doca_rdma_addr_type type, const std::string& text, std::uint16_t port) {
  CmAddress address{text, port};
  if (type == DOCA_RDMA_ADDR_TYPE_GID) {
    address.address = offload::rdma::to_string(offload::rdma::parse_gid(text));
  }
  const int family = address.native().ss_family;
  const bool is_as_said = type == DOCA_RDMA_ADDR_TYPE_GID ||
                          family == (type == DOCA_RDMA_ADDR_TYPE_IPv4 ? AF_INET : AF_INET6);
  if (!is_as_said) throw Error(ErrorCode::invalid_value, "'" + text + "' is of another family");
  return address;
}

void established(doca_rdma_connection& connection) noexcept {
  doca_rdma& rdma = *connection.rdma;
  if (connection.given_back || rdma.state != DOCA_CTX_STATE_RUNNING) {
    connection.cm->disconnect();  // again: before this event it has no effect
    return;
  }
  connection.state = State::connected;
  ++rdma.endpoint.in_callbacks;
  rdma.on_established(&connection, connection.user_data, rdma.user_data);
  --rdma.endpoint.in_callbacks;
}

void ended(doca_rdma_connection& connection, const Error& why) noexcept {
  doca_rdma& rdma = *connection.rdma;
  const State was = std::exchange(connection.state, State::ended);
  rdma.endpoint.stop_later(connection);
  if (connection.given_back || rdma.state != DOCA_CTX_STATE_RUNNING) return;
  const bool has_failed = was == State::connecting;
  offload::core::log_info("rdma: a connection has {}: {}", has_failed ? "failed" : "ended",
                          why.what());
  connection.given_back = has_failed;
  ++rdma.endpoint.in_callbacks;
  const auto call = has_failed ? rdma.on_failure : rdma.on_disconnection;
  call(&connection, connection.user_data, rdma.user_data);
  --rdma.endpoint.in_callbacks;
}

CmConnection& make_cm(doca_rdma_connection& connection) {
  return connection.cm.emplace(
      *connection.rdma->endpoint.engine(), *connection.connection,
      CmConnection::Callbacks{
          [&connection](CmConnection&) { established(connection); },
          [&connection](CmConnection&, const Error& why) { ended(connection, why); }});
}

/// Marks a connection whose making has failed as one to be dropped.
void give_up(doca_rdma_connection& connection) noexcept {
  connection.given_back = true;
  connection.state = State::ended;
  connection.rdma->endpoint.stop_later(connection);
}

void take_request(doca_rdma& rdma, RdmaEndpoint::Listener& listener, ConnectRequest request) {
  if (listener.ends || rdma.state != DOCA_CTX_STATE_RUNNING) return;  // which rejects it
  const std::string own = rdma.device.get()->rdma().device.name();
  if (const std::string arrived = request.device_name(); arrived != own) {
    throw Error(ErrorCode::not_supported, "it arrived at " + arrived + ", not at " + own);
  }
  doca_rdma_connection& made = rdma.endpoint.add(rdma);
  made.state = State::requested;
  made.request.emplace(std::move(request));
  ++rdma.endpoint.in_callbacks;
  rdma.on_request(&made, rdma.user_data);
  --rdma.endpoint.in_callbacks;
}

auto find_listener(doca_rdma& rdma, std::uint16_t port) noexcept {
  auto& all = rdma.endpoint.listeners;
  return std::find_if(all.begin(), all.end(),
                      [&](const auto& listener) { return listener->port == port; });
}

void listen(doca_rdma& rdma, std::uint16_t port) {
  auto made = std::make_unique<RdmaEndpoint::Listener>();
  made->port = port;
  const auto listens_at = [&](const char* address) {
    try {
      made->at.emplace(*rdma.endpoint.engine(), CmAddress{address, port},
                       [&rdma, listener = made.get()](ConnectRequest request) {
                         take_request(rdma, *listener, std::move(request));
                       });
    } catch (const Error& error) {
      // Where another one listens at all addresses, Linux says that this one is not available.
      if (error.code() == ErrorCode::in_use || error.cause().status == EADDRNOTAVAIL) {
        throw Error(ErrorCode::in_use, "another one listens to port " + std::to_string(port));
      }
      return false;
    }
    return true;
  };
  // The first is for IPv4 too, but a machine may be without IPv6.
  if (!listens_at("::") && !listens_at("0.0.0.0")) {
    throw Error(ErrorCode::operating_system, "cannot listen to port " + std::to_string(port));
  }
  rdma.endpoint.listeners.push_back(std::move(made));
}

void accept(doca_rdma_connection& connection, std::span<const std::byte> private_data) {
  doca_rdma& rdma = *connection.rdma;
  offload::rdma::PathOptions path = rdma.options.connection;
  const offload::rdma::Route route = connection.request->route();
  path.port_num = route.port_num;
  if (!path.gid.index) path.gid = route.gid;
  rdma.endpoint.start(connection, &path);
  make_cm(connection).accept(std::move(*connection.request), kConnectTime, private_data);
  connection.request.reset();
  connection.state = State::connecting;
}

}  // namespace

doca_error_t doca_rdma_set_connection_state_callbacks(
    doca_rdma* rdma, doca_rdma_connection_request_cb_t connection_request,
    doca_rdma_connection_established_cb_t connection_established,
    doca_rdma_connection_failure_cb_t connection_failure,
    doca_rdma_connection_disconnection_cb_t connection_disconnection) {
  if (rdma == nullptr || connection_established == nullptr || connection_failure == nullptr ||
      connection_disconnection == nullptr) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (rdma->state != DOCA_CTX_STATE_IDLE) return DOCA_ERROR_BAD_STATE;
  rdma->on_request = connection_request;
  rdma->on_established = connection_established;
  rdma->on_failure = connection_failure;
  rdma->on_disconnection = connection_disconnection;
  return DOCA_SUCCESS;
}

doca_error_t doca_rdma_start_listen_to_port(doca_rdma* rdma, uint16_t port) {
  if (rdma == nullptr || port == 0) return DOCA_ERROR_INVALID_VALUE;
  if (rdma->state != DOCA_CTX_STATE_RUNNING || rdma->on_request == nullptr) {
    return DOCA_ERROR_BAD_STATE;
  }
  const auto found = find_listener(*rdma, port);
  if (found == rdma->endpoint.listeners.end()) {
    return guarded(__func__, [&] { listen(*rdma, port); });
  }
  return std::exchange((*found)->ends, false) ? DOCA_SUCCESS : DOCA_ERROR_ALREADY_EXIST;
}

doca_error_t doca_rdma_stop_listen_to_port(doca_rdma* rdma, uint16_t port) {
  if (rdma == nullptr) return DOCA_ERROR_INVALID_VALUE;
  const auto found = find_listener(*rdma, port);
  if (found == rdma->endpoint.listeners.end() || (*found)->ends) return DOCA_ERROR_NOT_FOUND;
  (*found)->ends = true;  // not here, which may be its own callback
  rdma->endpoint.clean_up_later();
  return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_accept(doca_rdma_connection* rdma_connection, void* private_data,
                                         uint8_t private_data_len) {
  if (rdma_connection == nullptr || (private_data == nullptr && private_data_len != 0)) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (rdma_connection->state != State::requested ||
      rdma_connection->rdma->state != DOCA_CTX_STATE_RUNNING) {
    return DOCA_ERROR_BAD_STATE;
  }
  const doca_error_t result = guarded(__func__, [&] {
    accept(*rdma_connection, {static_cast<const std::byte*>(private_data), private_data_len});
  });
  if (result != DOCA_SUCCESS) {
    rdma_connection->request.reset();
    give_up(*rdma_connection);
  }
  return result;
}

doca_error_t doca_rdma_connection_reject(doca_rdma_connection* rdma_connection) {
  if (rdma_connection == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (rdma_connection->state != State::requested) return DOCA_ERROR_BAD_STATE;
  rdma_connection->request.reset();
  give_up(*rdma_connection);
  return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connection_disconnect(doca_rdma_connection* rdma_connection) {
  if (rdma_connection == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (rdma_connection->given_back || rdma_connection->state == State::requested) {
    return DOCA_ERROR_BAD_STATE;
  }
  if (!rdma_connection->cm) return DOCA_ERROR_NOT_SUPPORTED;
  rdma_connection->cm->disconnect();
  give_up(*rdma_connection);
  return DOCA_SUCCESS;
}

doca_error_t doca_rdma_addr_create(doca_rdma_addr_type addr_type, const char* address,
                                   uint16_t port, doca_rdma_addr** addr) {
  if (any_null(address, addr) || addr_type < DOCA_RDMA_ADDR_TYPE_IPv4 ||
      addr_type > DOCA_RDMA_ADDR_TYPE_GID) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__,
                 [&] { *addr = new doca_rdma_addr{address_of(addr_type, address, port)}; });
}

doca_error_t doca_rdma_addr_destroy(doca_rdma_addr* addr) {
  if (addr == nullptr) return DOCA_ERROR_INVALID_VALUE;
  delete addr;
  return DOCA_SUCCESS;
}

doca_error_t doca_rdma_connect_to_addr(doca_rdma* rdma, doca_rdma_addr* addr,
                                       doca_data connection_user_data) {
  if (any_null(rdma, addr)) return DOCA_ERROR_INVALID_VALUE;
  if (rdma->state != DOCA_CTX_STATE_RUNNING || rdma->on_established == nullptr) {
    return DOCA_ERROR_BAD_STATE;
  }
  return guarded(__func__, [&] {
    doca_rdma_connection& made = rdma->endpoint.add(*rdma);
    made.user_data = connection_user_data;
    try {
      rdma->endpoint.start(made);
      make_cm(made).connect(addr->address, kConnectTime);
    } catch (...) {
      give_up(made);
      throw;
    }
    made.state = State::connecting;
  });
}
