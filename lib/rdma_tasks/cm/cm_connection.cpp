#include "rdma_tasks/cm/cm_connection.hpp"

#include <algorithm>
#include <utility>

#include "protocol/bytes.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;

constexpr int kBacklog = 128;  // that of net/socket
/// The reason of a rejection where nothing listens (InfiniBand specification, volume 1, 12.6.7.2).
constexpr int kNoSuchService = 8;
constexpr std::uint8_t kRetries = RtsAttributes{}.retry_cnt;

/// Private data: a descriptor, the length of the user's bytes, and these. librdmacm pads private
/// data, so it needs the length.
std::vector<std::byte> pack(const ConnectionDescriptor& descriptor,
                            std::span<const std::byte> private_data) {
  auto packed = descriptor.encode();
  packed.push_back(static_cast<std::byte>(private_data.size()));
  packed.insert(packed.end(), private_data.begin(), private_data.end());
  return packed;
}

ConnectionDescriptor unpack(std::span<const std::byte> packed,
                            std::vector<std::byte>& private_data) {
  // The header of every version has the length, so that a later version is recognised.
  protocol::Reader header(packed);
  if (header.integer<std::uint32_t>() != kDescriptorEnvelope.magic) {
    throw Error(ErrorCode::bad_message,
                "the peer is another program, such as rping or ib_send_lat -R: expected the "
                "descriptor of a connection of this suite as private data");
  }
  static_cast<void>(header.integer<std::uint16_t>());
  const std::size_t length = std::min<std::size_t>(header.integer<std::uint32_t>(), packed.size());
  auto descriptor = ConnectionDescriptor::decode(packed.first(length));
  protocol::Reader rest(packed.subspan(length));
  const std::size_t count = rest.integer<std::uint8_t>();
  const auto data = rest.rest();
  if (count > data.size()) {
    throw Error(ErrorCode::bad_message, "private data of a connection: it is truncated");
  }
  private_data.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count));
  return descriptor;
}

/// The Error of an event that ends the connection.
Error failure_of(const CmEvent& event) {
  const std::string text = std::string("librdmacm: ") + rdma_event_str(event.type);
  switch (event.type) {
    case RDMA_CM_EVENT_REJECTED:
      return {ErrorCode::not_connected,
              text + (event.status == kNoSuchService
                          ? ": the peer does not listen at this port by librdmacm"
                          : ": the peer listens, and rejected it")};
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return {ErrorCode::not_connected,
              text + ": " + core::describe_errno(event.status < 0 ? -event.status : event.status)};
    case RDMA_CM_EVENT_DISCONNECTED: return {ErrorCode::connection_reset, text};
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return {ErrorCode::driver, text};
    default: return {ErrorCode::connection_aborted, text};
  }
}

}  // namespace

ConnectRequest::ConnectRequest(const CmEvent& event, CmExchange exchange)
    : id_(event.id, "a connection request") {
  if (exchange == CmExchange::parameters) {
    private_data_ = event.private_data;
  } else {
    peer_ = unpack(event.private_data, private_data_);
  }
}

CmListener::CmListener(progress::Engine& engine, const CmAddress& at, OnRequest on_request,
                       CmExchange exchange)
    : on_request_(std::move(on_request)), exchange_(exchange), id_(engine, *this) {
  sockaddr_storage address = at.native();
  const std::string text = "listen at " + at.address + " port " + std::to_string(at.port);
  check(rdma_bind_addr(id_.get(), reinterpret_cast<sockaddr*>(&address)), text);
  check(rdma_listen(id_.get(), kBacklog), text);
}

std::uint16_t CmListener::port() const noexcept {
  return ntohs(rdma_get_src_port(id_.get()));
}

void CmListener::on_cm_event(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    core::log_error("the RDMA device of a listener was removed: peers can no longer connect");
  }
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  const std::string peer = to_string(event.id->route.addr.addr.ibaddr.dgid);
  try {
    on_request_(ConnectRequest(event, exchange_));
  } catch (const Error& error) {
    if (!rejected_log_.allow(core::Clock::now())) return;
    core::log_warning("a peer is rejected, {}: {} ({} more were not logged)", peer, error.what(),
                      rejected_log_.suppressed());
  }
}

CmConnection::CmConnection(progress::Engine& engine, Connection& connection, Callbacks callbacks)
    : engine_(&engine), connection_(&connection), callbacks_(std::move(callbacks)) {}

CmConnection::~CmConnection() {
  engine_->deactivate(*this);
}

void CmConnection::begin(CmExchange exchange, core::Duration limit,
                         std::span<const std::byte> private_data) {
  if (state_ != State::idle) core::throw_bad_state("a CM connection", "in use", "connect");
  if (private_data.size() > kMaxPrivateData) {
    throw Error(ErrorCode::invalid_value, "private data is too long; allowed are at most " +
                                              std::to_string(kMaxPrivateData) + " bytes");
  }
  const ConnectionDescriptor descriptor = connection_->descriptor();
  if (exchange == CmExchange::parameters) {
    private_data_.assign(private_data.begin(), private_data.end());
  } else {
    private_data_ = pack(descriptor, private_data);
  }
  exchange_ = exchange;
  deadline_ = engine_->run_time() + limit;
}

void CmConnection::connect(const CmAddress& to, core::Duration limit,
                           std::span<const std::byte> private_data, CmExchange exchange) {
  sockaddr_storage address = to.native();
  begin(exchange, limit, private_data);
  CmEventHandler& handler = *this;
  id_.emplace(*engine_, handler);
  const int result = rdma_resolve_addr(id_->get(), nullptr, reinterpret_cast<sockaddr*>(&address),
                                       milliseconds_left());
  if (const int errnum = errno_of(result); errnum != 0) {
    id_.reset();
    core::throw_errno("resolve " + to.address, errnum);
  }
  state_ = State::connecting;
  engine_->activate(*this);
}

void CmConnection::accept(ConnectRequest request, core::Duration limit,
                          std::span<const std::byte> private_data) {
  begin(request.peer_ ? CmExchange::descriptors : CmExchange::parameters, limit, private_data);
  peer_data_ = std::move(request.private_data_);
  peer_ = request.peer_;
  CmEventHandler& handler = *this;
  id_.emplace(*engine_, handler, std::move(request.id_));
  try {
    if (request.peer_) {
      connection_->connect_to(*request.peer_);
    } else {
      connect_by_parameters();
    }
    rdma_conn_param offered = parameters();
    check(rdma_accept(id_->get(), &offered), "accept a connection");
  } catch (...) {
    id_.reset();  // which rejects the peer
    throw;
  }
  state_ = State::connecting;
  engine_->activate(*this);
}

void CmConnection::disconnect() noexcept {
  if (id_) rdma_disconnect(id_->get());
}

rdma_conn_param CmConnection::parameters() const {
  // The user may have stopped it, or its device may have failed, during the resolution.
  const QueuePair* const queue = connection_->queue_pair();
  if (queue == nullptr) core::throw_bad_state("the connection", "not running", "connect");
  rdma_conn_param parameters{};
  parameters.private_data = private_data_.data();
  parameters.private_data_len = static_cast<std::uint8_t>(private_data_.size());
  // With descriptors, these parameters take no effect: the queue pairs follow the descriptors.
  const bool described = exchange_ == CmExchange::descriptors;
  parameters.responder_resources = described ? 1 : RDMA_MAX_RESP_RES;
  parameters.initiator_depth = described ? 1 : RDMA_MAX_INIT_DEPTH;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kRetries;
  parameters.qp_num = queue->qp_num();
  return parameters;
}

/// Connects by the attributes that librdmacm made of its own messages (rdma_init_qp_attr(3)).
void CmConnection::connect_by_parameters() {
  ConnectionDescriptor peer = connection_->descriptor();  // the link layer is the same
  if (peer.qp_type != QpType::rc) {
    throw Error(ErrorCode::invalid_value, "a connection by CM parameters must be RC");
  }
  const auto sent = Route::of(*id_->get()).gid.address;
  if (sent && !equal(*sent, peer.gid)) {
    throw Error(ErrorCode::invalid_value, "the connection uses " + to_string(peer.gid) +
                                              ", but librdmacm sent the peer " + to_string(*sent));
  }
  const auto attributes_of = [this](ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    int mask = 0;
    check(rdma_init_qp_attr(id_->get(), &attributes, &mask),
          "query the attributes of a CM connection");
    return attributes;
  };
  const ibv_qp_attr rtr = attributes_of(IBV_QPS_RTR);
  const ibv_qp_attr rts = attributes_of(IBV_QPS_RTS);
  peer.lid = rtr.ah_attr.dlid;
  peer.gid = rtr.ah_attr.grh.dgid;
  peer.qp_num = rtr.dest_qp_num;
  peer.psn = rtr.rq_psn;
  peer.mtu = rtr.path_mtu;
  peer.max_dest_rd_atomic = rts.max_rd_atomic;
  connection_->connect_to(peer, rts.sq_psn);
}

int CmConnection::milliseconds_left() const noexcept {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - engine_->run_time());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 1 << 30));
}

void CmConnection::on_cm_event(const CmEvent& event) {
  if (state_ == State::ended) return;
  try {
    advance(event);
  } catch (const Error& error) {
    end(error);
  }
}

void CmConnection::advance(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      check(rdma_resolve_route(id_->get(), milliseconds_left()), "resolve a route");
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      rdma_conn_param offered = parameters();
      check(rdma_connect(id_->get(), &offered), "connect");
      return;
    }
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (exchange_ == CmExchange::descriptors) {
        peer_ = unpack(event.private_data, peer_data_);
        connection_->connect_to(*peer_);
      } else {
        peer_data_ = event.private_data;
        connect_by_parameters();
      }
      check(rdma_establish(id_->get()), "establish a connection");
      establish();
      return;
    case RDMA_CM_EVENT_ESTABLISHED: establish(); return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: return;
    default: end(failure_of(event));
  }
}

void CmConnection::establish() {
  if (state_ != State::connecting) return;
  state_ = State::connected;
  engine_->deactivate(*this);
  callbacks_.connected(*this);
}

void CmConnection::end(const Error& why) {
  state_ = State::ended;
  engine_->deactivate(*this);
  rdma_disconnect(id_->get());  // answers the peer; an error where there was no connection
  callbacks_.ended(*this, why);
}

bool CmConnection::poll() {
  if (state_ != State::connecting || engine_->run_time() < deadline_) return false;
  end({ErrorCode::timed_out, "librdmacm: the peer did not answer in time"});
  return true;
}

core::Duration CmConnection::arm() {
  return std::max(deadline_ - engine_->run_time(), core::Duration{});
}

}  // namespace offload::rdma
