#include "tests/rdma_tasks/fake_cm.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace offload::rdma::test {
namespace {

FakeCm cm;

struct FakeChannel {
  rdma_event_channel native{};  ///< first: a pointer to it is one to this
  int writer = -1;
};

struct FakeEvent {
  rdma_cm_event native{};  ///< first
  std::vector<std::byte> private_data;
};
std::deque<std::unique_ptr<FakeEvent>> pending;

int fails_cm(const char* call) {
  cm.calls.emplace_back(call);
  if (cm.fail_call != call) return 0;
  errno = cm.fail_with;
  return -1;
}

void note(const rdma_conn_param* parameters) {
  cm.parameters = *parameters;
  const auto* const data = static_cast<const std::byte*>(parameters->private_data);
  cm.private_data.assign(data, data + parameters->private_data_len);
}

}  // namespace

FakeCm& fake_cm() {
  return cm;
}

void reset_fake_cm() {
  cm = {};
  pending.clear();
}

bool FakeCm::called(const char* call) const {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

void FakeCm::deliver(rdma_cm_event_type type, std::vector<std::byte> data, int status,
                     rdma_cm_id* requested) {
  auto event = std::make_unique<FakeEvent>();
  event->private_data = std::move(data);
  event->native.event = type;
  event->native.status = status;
  event->native.id = requested != nullptr ? requested : latest;
  event->native.param.conn.private_data = event->private_data.data();
  event->native.param.conn.private_data_len = static_cast<std::uint8_t>(event->private_data.size());
  pending.push_back(std::move(event));
  auto* const channel = reinterpret_cast<FakeChannel*>(latest->channel);
  [[maybe_unused]] const auto written = ::write(channel->writer, "x", 1);
}

rdma_cm_id* FakeCm::make_requested() {
  ++identifiers;
  auto* const id = new rdma_cm_id{};
  id->verbs = verbs;
  id->port_num = 1;
  id->route.addr.addr.ibaddr.sgid = sgid;
  return id;
}

}  // namespace offload::rdma::test

using namespace offload::rdma::test;

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  if (fails_cm("rdma_create_event_channel") != 0) return nullptr;
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  ++cm.channels;
  auto* const channel = new FakeChannel;
  channel->native.fd = ends[0];
  channel->writer = ends[1];
  return &channel->native;
}
void rdma_destroy_event_channel(rdma_event_channel* native) {
  auto* const channel = reinterpret_cast<FakeChannel*>(native);
  ::close(native->fd);
  ::close(channel->writer);
  delete channel;
  --cm.channels;
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void*, rdma_port_space) {
  if (fails_cm("rdma_create_id") != 0) return -1;
  *id = cm.latest = cm.make_requested();
  cm.latest->channel = channel;
  return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
  if (id == cm.latest) cm.latest = nullptr;
  delete id;
  --cm.identifiers;
  return 0;
}
int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  if (fails_cm("rdma_migrate_id") != 0) return -1;
  cm.latest = id;
  id->channel = channel;
  return 0;
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  char byte = 0;
  if (::read(channel->fd, &byte, 1) != 1) return -1;
  *event = &pending.front().release()->native;
  pending.pop_front();
  ++cm.unacknowledged;
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  delete reinterpret_cast<FakeEvent*>(event);
  --cm.unacknowledged;
  return 0;
}
const char* rdma_event_str(rdma_cm_event_type) {
  return "an event";
}

int rdma_bind_addr(rdma_cm_id*, sockaddr*) {
  return fails_cm("rdma_bind_addr");
}
int rdma_listen(rdma_cm_id*, int) {
  return fails_cm("rdma_listen");
}
std::uint16_t rdma_get_src_port(rdma_cm_id*) {
  return htons(7174);
}
int rdma_resolve_addr(rdma_cm_id*, sockaddr*, sockaddr*, int) {
  return fails_cm("rdma_resolve_addr");
}
int rdma_resolve_route(rdma_cm_id*, int) {
  return fails_cm("rdma_resolve_route");
}
int rdma_connect(rdma_cm_id*, rdma_conn_param* parameters) {
  note(parameters);
  return fails_cm("rdma_connect");
}
int rdma_accept(rdma_cm_id*, rdma_conn_param* parameters) {
  note(parameters);
  return fails_cm("rdma_accept");
}
int rdma_establish(rdma_cm_id*) {
  return fails_cm("rdma_establish");
}
int rdma_disconnect(rdma_cm_id*) {
  return fails_cm("rdma_disconnect");
}
int rdma_init_qp_attr(rdma_cm_id*, ibv_qp_attr* attributes, int*) {
  *attributes = cm.attributes;
  return fails_cm("rdma_init_qp_attr");
}
}
