#include "comch/remote_worker.hpp"

#include <utility>

#include "comch/packed.hpp"

namespace offload::comch {
namespace {

/// The first message whose response is not in its slot: what was written there came whole.
std::uint64_t first_unanswered(const kernels::Channel& channel, const Cursors& cursors) {
  std::uint64_t sequence = cursors.received;
  while (sequence != cursors.posted) {
    const kernels::Vector header = kernels::load_vector(channel.response(sequence).vectors);
    if (header.turn != channel.layout.turn_of(sequence)) break;
    ++sequence;
  }
  return sequence;
}

}  // namespace

RemoteWorker::RemoteWorker(progress::Engine& engine, const ServerEnd& end,
                           std::unique_ptr<Line> line)
    : channel_(end.channel),
      cursors_(end.cursors),
      first_(first_unanswered(channel_, *cursors_)),
      collected_(first_),
      answered_(first_),
      packed_(std::make_unique<std::byte[]>(channel_.layout.depth * kPackedRoom)),
      carrier_(line->carry(engine, channel_, *this, 0)) {}

bool RemoteWorker::collect() {
  bool worked = false;
  for (; collected_ != cursors_->posted; ++collected_, worked = true) {
    const kernels::Part part = channel_.request(collected_);
    const std::uint32_t length = kernels::load_vector(part.vectors).data[0];
    const std::byte* payload = reinterpret_cast<const std::byte*>(part.plain);
    if (length <= kernels::kMaxPacked) {
      std::byte* const to = packed_.get() + channel_.layout.slot_of(collected_) * kPackedRoom;
      (void)read_packed(part.vectors, channel_.layout.turn_of(collected_), to, length);
      payload = to;
    }
    carrier_->push({collected_ - first_, length, 0}, payload);
  }
  return worked;
}

bool RemoteWorker::is_due(const protocol::DataHeader& header) const {
  return header.sequence == answered_ - first_ && header.sequence < carrier_->sent();
}

std::byte* RemoteWorker::room(std::uint64_t sequence) {
  return reinterpret_cast<std::byte*>(channel_.response(first_ + sequence).plain);
}

bool RemoteWorker::take(const protocol::DataHeader& header, std::span<const std::byte> payload) {
  const kernels::Part part = channel_.response(answered_);
  const std::uint32_t turn = channel_.layout.turn_of(answered_);
  if (header.length <= kernels::kMaxPacked) {
    write_packed(part.vectors, turn, payload.data(), header.length, header.status);
  } else {
    kernels::release_plain_payload();
    kernels::store_vector(part.vectors, {{header.length, header.status, 0}, turn});
  }
  ++answered_;
  return true;
}

}  // namespace offload::comch
