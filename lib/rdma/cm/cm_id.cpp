#include "rdma/cm/cm_id.hpp"

#include <fcntl.h>

#include <utility>

#include "rdma/verbs/error.hpp"

namespace offload::rdma {
namespace {

NativeCmId create(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  check(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  return {id, "an identifier of librdmacm"};
}

CmEvent copy_of(const rdma_cm_event& event) {
  CmEvent copy;
  copy.type = event.event;
  copy.status = event.status;
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) copy.id = event.id;
  const auto* const data = static_cast<const std::byte*>(event.param.conn.private_data);
  if (data != nullptr) {
    copy.private_data.assign(data, data + event.param.conn.private_data_len);
  }
  return copy;
}

}  // namespace

CmId::Channel::Channel()
    : native(check_pointer(rdma_create_event_channel(), "make a channel of librdmacm")) {}

CmId::Channel::~Channel() {
  rdma_destroy_event_channel(native);
}

CmId::CmId(progress::Engine& engine, CmSink& sink)
    : engine_(&engine), sink_(&sink), id_(create(channel_.native)) {
  watch();
}

CmId::CmId(progress::Engine& engine, CmSink& sink, NativeCmId requested)
    : engine_(&engine), sink_(&sink), id_(std::move(requested)) {
  check(rdma_migrate_id(id_.get(), channel_.native), "rdma_migrate_id");
  watch();
}

void CmId::watch() {
  const int fd = channel_.native->fd;
  const int flags = core::check_errno(::fcntl(fd, F_GETFL), "fcntl");
  core::check_errno(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), "fcntl");
  engine_->watch(fd, EPOLLIN, *this);
}

CmId::~CmId() {
  engine_->unwatch(channel_.native->fd, *this);
}

void CmId::on_events(std::uint32_t) {
  // One a turn: the descriptor stays readable while there are more.
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_.native, &event) != 0) return;
  const CmEvent copy = copy_of(*event);
  // Before the sink is told: an identifier cannot be ended while an event of it is out.
  rdma_ack_cm_event(event);
  sink_->on_cm_event(copy);
}

}  // namespace offload::rdma
