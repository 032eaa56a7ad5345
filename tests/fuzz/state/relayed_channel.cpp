#include "tests/fuzz/state/relayed_channel.hpp"

#include <algorithm>

#include "channel/packets.hpp"
#include "comch/transport/tcp/data.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "protocol/frame.hpp"

namespace offload::fuzz {
namespace {

std::unique_ptr<channel::ChannelMemory> make_memory(std::uint32_t depth) {
  return std::make_unique<channel::ChannelMemory>(0, depth, RelayedChannel::kLongest, -1);
}

std::unique_ptr<comch::DataEndpoint> endpoint_over(core::Fd socket) {
  return std::make_unique<comch::TcpDataEndpoint>(comch::TcpStream(std::move(socket)));
}

std::vector<std::unique_ptr<channel::ChannelMemory>> first_memory(std::uint32_t depth) {
  std::vector<std::unique_ptr<channel::ChannelMemory>> memories;
  memories.push_back(make_memory(depth));
  return memories;
}

}  // namespace

RelayedChannel::RelayedChannel(progress::Engine& engine, std::uint32_t depth, bool little)
    : depth_(depth),
      little_(little),
      memories_(first_memory(depth)),
      requester_(memories_.back()->endpoint(), *this) {
  requester_.open(engine);
  attach();
  requester_.set_wakeup(channel::Wakeup::engine);
}

void RelayedChannel::attach() {
  pipe_.emplace(little_);
  worker_.reset();
  worker_ = std::make_unique<comch::WorkerProxy>(requester_, memories_.back()->endpoint(),
                                                 endpoint_over(pipe_->take_end(0)));
  server_ = std::make_unique<comch::ServerProxy>(memories_.back()->descriptor(),
                                                 endpoint_over(pipe_->take_end(1)));
  server_->open(channel::Wakeup::polling);
  next_slot_ = 0;
  trusted_ = true;
}

void RelayedChannel::replace() {
  requester_.set_wakeup(channel::Wakeup::none);
  memories_.push_back(make_memory(depth_));
  attach();
  requester_.move_to(memories_.back()->endpoint(), channel::Wakeup::engine);
}

bool RelayedChannel::post(std::vector<std::byte> request) {
  if (!requester_.post(request, this).ok()) return false;
  requests_.push_back(std::move(request));
  return true;
}

bool RelayedChannel::serve() {
  static kernels::Staging staging{};
  const auto outcome = kernels::serve(kernels::SingleLane{}, server_->channel()->view(), next_slot_,
                                      kernels::Reverse{}, staging);
  if (outcome == kernels::Outcome::nothing) return false;
  require(outcome == kernels::Outcome::answered || !trusted_, "a request arrives as it was sent");
  ++next_slot_;
  return true;
}

void RelayedChannel::lie(std::uint32_t length, std::uint32_t status, std::uint32_t count) {
  distrust();
  const kernels::ChannelView& view = server_->channel()->view();
  const kernels::Slot slot = view.response(next_slot_);
  const std::uint32_t flag = view.layout.flag_of(next_slot_);
  if (length <= kernels::kMaxPacketPayload) {
    const std::byte content[kernels::kMaxPacketPayload]{};
    channel::write_packets(slot.packets, flag, content, length, status, count);
  } else {
    kernels::store_packet(slot.packets, {{length, status, count}, flag});
  }
  ++next_slot_;
}

void RelayedChannel::on_response(channel::PostRecvTask& task) {
  last_ = &task;
  require(task.user_data == this, "a response is its requester's");
  require(task.count() <= requests_.size(), "no response without a request");
  if (task.response_status() != kernels::ResponseStatus::ok) {
    require(!trusted_, "a good request is answered");
    require(task.count() == 1 && task.payload().empty(), "a refusal has no payload");
    return requests_.pop_front();
  }
  const std::span<const std::byte> frames = task.frame();
  if (frames.empty()) return take(task.payload());
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < task.count(); ++i) {
    const auto frame = protocol::parse_frame(frames.subspan(at), kLongest);
    require(frame.state == protocol::FrameView::State::complete &&
                frame.id == protocol::MessageId::client_response,
            "what is passed on are whole frames");
    take(frame.payload);
    at += frame.size();
  }
  require(at == frames.size(), "and nothing else");
}

void RelayedChannel::take(std::span<const std::byte> payload) {
  const std::vector<std::byte>& request = requests_.front();
  if (trusted_) {
    require(std::equal(payload.begin(), payload.end(), request.rbegin(), request.rend()),
            "an answer is the reversal of its request");
  }
  unsigned sum = 0;  // each byte is there to be read
  for (const std::byte byte : payload) sum += static_cast<unsigned>(byte);
  require(sum <= 255U * payload.size(), "a sum of bytes");
  requests_.pop_front();
}

void RelayedChannel::release() {
  if (last_ == nullptr) return;
  require(requester_.release(*std::exchange(last_, nullptr)).ok(), "a response is released");
  requester_.flush();
}

}  // namespace offload::fuzz
