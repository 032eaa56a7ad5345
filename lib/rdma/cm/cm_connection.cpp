#include "rdma/cm/cm_connection.hpp"

#include <algorithm>
#include <utility>

#include "core/log.hpp"
#include "protocol/bytes.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;

constexpr int kBacklog = 128;  // as net/socket's
constexpr std::uint8_t kRetries = 6;

/// A descriptor and the user's bytes, with their length before them: librdmacm pads what it
/// carries.
std::vector<std::byte> offer_of(const ConnectionDescriptor& descriptor,
                                std::span<const std::byte> private_data) {
  auto offer = descriptor.encode();
  offer.push_back(static_cast<std::byte>(private_data.size()));
  offer.insert(offer.end(), private_data.begin(), private_data.end());
  return offer;
}

ConnectionDescriptor take_offer(std::span<const std::byte> offer,
                                std::vector<std::byte>& private_data) {
  // The length is in every version's header, so that a later one is told from garbage.
  protocol::Reader header(offer);
  static_cast<void>(header.integer<std::uint32_t>());
  static_cast<void>(header.integer<std::uint16_t>());
  const std::size_t length = std::min<std::size_t>(header.integer<std::uint32_t>(), offer.size());
  auto descriptor = ConnectionDescriptor::decode(offer.first(length));
  protocol::Reader rest(offer.subspan(length));
  const std::size_t count = rest.integer<std::uint8_t>();
  const auto data = rest.rest();
  if (count > data.size()) {
    throw Error(ErrorCode::bad_message, "private data of a connection: it is cut off");
  }
  private_data.assign(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count));
  return descriptor;
}

/// What an event says that comes instead of the next step.
Error failure_of(const CmEvent& event) {
  const std::string text = std::string("librdmacm: ") + rdma_event_str(event.type);
  switch (event.type) {
    case RDMA_CM_EVENT_REJECTED:
      return {ErrorCode::not_connected, text + ": the peer does not listen, or turned it away"};
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

ConnectRequest::ConnectRequest(const CmEvent& event, Peers peers)
    : id_(event.id, "a connection request") {
  if (peers == Peers::any) {
    private_data_ = event.private_data;
  } else {
    peer_ = take_offer(event.private_data, private_data_);
  }
}

Listener::Listener(progress::Engine& engine, const CmAddress& at, OnRequest on_request, Peers peers)
    : on_request_(std::move(on_request)), peers_(peers), id_(engine, *this) {
  sockaddr_storage address = at.native();
  const std::string text = "listen at " + at.address + " port " + std::to_string(at.port);
  check(rdma_bind_addr(id_.get(), reinterpret_cast<sockaddr*>(&address)), text);
  check(rdma_listen(id_.get(), kBacklog), text);
}

std::uint16_t Listener::port() const noexcept {
  return ntohs(rdma_get_src_port(id_.get()));
}

void Listener::on_cm_event(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    core::log_error(
        "the RDMA device that was listened on is gone: no peer can come by it any more");
  }
  if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  try {
    on_request_(ConnectRequest(event, peers_));
  } catch (const Error& error) {
    if (!turned_away_log_.allow(core::Clock::now())) return;
    core::log_warning("a peer is turned away: {} ({} more were not logged)", error.what(),
                      turned_away_log_.suppressed());
  }
}

Link::Link(progress::Engine& engine, Connection& connection, Callbacks callbacks)
    : engine_(&engine), connection_(&connection), callbacks_(std::move(callbacks)) {}

Link::~Link() {
  engine_->deactivate(*this);
}

void Link::begin(Peers peers, core::Duration limit, std::span<const std::byte> private_data) {
  if (state_ != State::idle) core::throw_bad_state("a link", "in use", "connect");
  if (private_data.size() > kMostPrivateData) {
    throw Error(ErrorCode::invalid_value,
                "private data of more than " + std::to_string(kMostPrivateData) + " bytes");
  }
  const ConnectionDescriptor descriptor = connection_->descriptor();
  if (peers == Peers::any) {
    offer_.assign(private_data.begin(), private_data.end());
  } else {
    offer_ = offer_of(descriptor, private_data);
  }
  peers_ = peers;
  deadline_ = core::Clock::now() + limit;
}

void Link::connect(const CmAddress& to, core::Duration limit,
                   std::span<const std::byte> private_data, Peers peers) {
  sockaddr_storage address = to.native();
  begin(peers, limit, private_data);
  CmSink& sink = *this;
  id_.emplace(*engine_, sink);
  const int result = rdma_resolve_addr(id_->get(), nullptr, reinterpret_cast<sockaddr*>(&address),
                                       milliseconds_left());
  if (const int errnum = errno_of(result); errnum != 0) {
    id_.reset();
    core::throw_errno("resolve " + to.address, errnum);
  }
  state_ = State::connecting;
  engine_->activate(*this);
}

void Link::accept(ConnectRequest request, core::Duration limit,
                  std::span<const std::byte> private_data) {
  begin(request.peer_ ? Peers::described : Peers::any, limit, private_data);
  peer_data_ = std::move(request.private_data_);
  CmSink& sink = *this;
  id_.emplace(*engine_, sink, std::move(request.id_));
  try {
    if (request.peer_) {
      connection_->connect_to(*request.peer_);
    } else {
      connect_as_told();
    }
    rdma_conn_param offered = parameters();
    check(rdma_accept(id_->get(), &offered), "accept a connection");
  } catch (...) {
    id_.reset();  // which turns the peer away
    throw;
  }
  state_ = State::connecting;
  engine_->activate(*this);
}

void Link::disconnect() noexcept {
  if (id_) rdma_disconnect(id_->get());
}

rdma_conn_param Link::parameters() const {
  // The user may have stopped it, or its device have failed, while librdmacm looked for the peer.
  const QueuePair* const queue = connection_->queue_pair();
  if (queue == nullptr) core::throw_bad_state("a link's connection", "not running", "connect");
  rdma_conn_param parameters{};
  parameters.private_data = offer_.data();
  parameters.private_data_len = static_cast<std::uint8_t>(offer_.size());
  // What the queue pairs do is in the descriptors, if there are any: then these are but what
  // librdmacm wants to hear.
  const bool described = peers_ == Peers::described;
  parameters.responder_resources = described ? 1 : RDMA_MAX_RESP_RES;
  parameters.initiator_depth = described ? 1 : RDMA_MAX_INIT_DEPTH;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kRetries;
  parameters.qp_num = queue->number();
  return parameters;
}

/// What the messages of librdmacm itself said of the peer, and told it of this end.
void Link::connect_as_told() {
  ConnectionDescriptor peer = connection_->descriptor();  // the link layer is the same
  if (peer.transport != Transport::rc) {
    throw Error(ErrorCode::invalid_value, "a peer that is not described has RC alone");
  }
  const auto told = Route::of(*id_->get()).gid.address;
  if (told && !equal(*told, peer.gid)) {
    throw Error(ErrorCode::invalid_value, "the connection is of " + to_string(peer.gid) +
                                              ", and the peer was told " + to_string(*told));
  }
  const auto told_of = [this](ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    int mask = 0;
    check(rdma_init_qp_attr(id_->get(), &attributes, &mask), "ask librdmacm about the peer");
    return attributes;
  };
  const ibv_qp_attr to_receive = told_of(IBV_QPS_RTR);
  const ibv_qp_attr to_send = told_of(IBV_QPS_RTS);
  peer.lid = to_receive.ah_attr.dlid;
  peer.gid = to_receive.ah_attr.grh.dgid;
  peer.queue_pair = to_receive.dest_qp_num;
  peer.first_packet = to_receive.rq_psn;
  peer.mtu = to_receive.path_mtu;
  peer.reads_in = to_send.max_rd_atomic;
  connection_->connect_to(peer, to_send.sq_psn);
}

int Link::milliseconds_left() const noexcept {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - core::Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 1 << 30));
}

void Link::on_cm_event(const CmEvent& event) {
  if (state_ == State::ended) return;
  try {
    advance(event);
  } catch (const Error& error) {
    end(error);
  }
}

void Link::advance(const CmEvent& event) {
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
      if (peers_ == Peers::described) {
        connection_->connect_to(take_offer(event.private_data, peer_data_));
      } else {
        peer_data_ = event.private_data;
        connect_as_told();
      }
      check(rdma_establish(id_->get()), "establish a connection");
      establish();
      return;
    case RDMA_CM_EVENT_ESTABLISHED: establish(); return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: return;
    default: end(failure_of(event));
  }
}

void Link::establish() {
  if (state_ != State::connecting) return;
  state_ = State::connected;
  engine_->deactivate(*this);
  callbacks_.connected(*this);
}

void Link::end(const Error& why) {
  state_ = State::ended;
  engine_->deactivate(*this);
  rdma_disconnect(id_->get());  // answers the peer; an error where there was no connection
  callbacks_.ended(*this, why);
}

bool Link::poll() {
  if (state_ != State::connecting || engine_->now() < deadline_) return false;
  end({ErrorCode::timed_out, "librdmacm: the peer did not answer in time"});
  return true;
}

core::Duration Link::arm() {
  return std::max(deadline_ - core::Clock::now(), core::Duration{});
}

}  // namespace offload::rdma
