#include "tests/kernels/packets/far_end.hpp"

#include <cstring>
#include <utility>

#include "tests/kernels/packets/card_end.hpp"

namespace offload::kernels::packets::test {

struct FarEnd::State {
  static constexpr std::uint32_t kFrames = 64;
  static constexpr WaitLimit kAtOnce{0};

  explicit State(rdma::test::ModelCard& card) : end(card, kFrames, 0) {}

  CardEnd<kernels::test::HostPlace> end;
  std::uint32_t received = 0;
  std::vector<Bytes> to_send;
  std::size_t next = 0;
  std::vector<Bytes> came;
};

FarEnd::FarEnd(rdma::test::ModelCard& card) : state_(std::make_unique<State>(card)) {}
FarEnd::~FarEnd() = default;

const rdma::test::ModelPair& FarEnd::pair() const {
  return state_->end.pair();
}

void FarEnd::add(Bytes packet) {
  state_->to_send.push_back(std::move(packet));
}

bool FarEnd::send_next() {
  if (state_->next == state_->to_send.size()) return false;
  const Bytes& packet = state_->to_send[state_->next];
  const auto write = [&packet](std::uint8_t* bytes, std::uint32_t) {
    std::memcpy(bytes, packet.data(), packet.size());
    return static_cast<std::uint32_t>(packet.size());
  };
  if (send_new(SingleLane{}, state_->end.queue(), 1, State::kAtOnce, write) == 0) return false;
  ++state_->next;
  return true;
}

bool FarEnd::take() {
  const CardQueue& queue = state_->end.queue();
  const FrameBatch batch = receive(SingleLane{}, queue, state_->received, 16, State::kAtOnce);
  finish(SingleLane{}, queue, queue, state_->received, batch, State::kAtOnce,
         [this](const EthernetFrame& packet) {
           state_->came.emplace_back(packet.data, packet.data + packet.length);
           return Verdict::drop;
         });
  return batch.count != 0;
}

const std::vector<Bytes>& FarEnd::came() const {
  return state_->came;
}

}  // namespace offload::kernels::packets::test
