/// A sample: two blocks send each other a message, into receives that each posts itself.
#include "apps/samples/launch.hpp"
#include "kernels/rdma_tasks/put.hpp"
#include "kernels/rdma_tasks/receive.hpp"

namespace {

using namespace offload::samples;
namespace rdma = offload::kernels::rdma;

constexpr std::uint32_t kRounds = 500;
constexpr std::uint32_t kReceives = 4;

/// The data of a block: its queue pair, a message to send, and room for received ones.
struct Player {
  WorkQueues queues;
  rdma::LocalBuffer out;
  rdma::LocalBuffer in;  ///< kReceives times 8 bytes
  std::uint64_t* sent;
  const std::uint64_t* came;
};

struct PingPong {
  Player players[2];
  std::uint64_t* rounds;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned block) const {
    const Player& own = players[block];
    rdma::ExclusiveQueue sends{own.queues.send};
    rdma::ExclusiveReceives receives{own.queues.receive};
    const auto room = [&](std::uint64_t i) {
      return rdma::LocalBuffer{own.in.address + i % kReceives * 8, 8, own.in.lkey};
    };
    rdma::post_receives(group, receives, kReceives, room);
    std::uint64_t ball = 0;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      if (block == 0 && !serve(group, own, sends, ball + 1)) return;
      rdma::Completion completion{};
      if (rdma::receive(group, receives, patience(), completion) != rdma::WorkResult::done) return;
      ball = own.came[round % kReceives];
      group.sync();  // all have read it before it is room again
      rdma::post_receives(group, receives, 1, [&](std::uint32_t) { return room(round); });
      if (block == 1 && !serve(group, own, sends, ball + 1)) return;
    }
    if (block == 0 && group.lane() == 0) *rounds = ball;
  }
  template <class Group>
  OFFLOAD_HOST_DEVICE static bool serve(const Group& group, const Player& own,
                                        rdma::ExclusiveQueue& sends, std::uint64_t ball) {
    if (group.lane() == 0) *own.sent = ball;
    group.sync();
    std::uint64_t ticket = 0;
    if (rdma::send(group, sends, own.out, patience(), ticket) != rdma::WorkResult::done)
      return false;
    return rdma::wait_for(group, sends, ticket, patience()) == rdma::WorkResult::done;
  }
};

std::string run(bool& ok) {
  SampleCard card;
  const std::size_t each = SampleCard::queue_bytes(16, kReceives);
  const Memory queues(card, 2 * each);
  const Memory words(card, 64 * 8);
  PingPong game{};
  for (int i = 0; i < 2; ++i) {
    const std::size_t own = 128 * static_cast<std::size_t>(i);
    game.players[i] = {
        card.add_queue(queues.as<char>() + each * static_cast<std::size_t>(i), 16, kReceives),
        words.local(own, 8), words.local(own + 64, 8), words.as<std::uint64_t>() + own / 8,
        words.as<std::uint64_t>() + (own + 64) / 8};
  }
  card.connect(game.players[0].queues, game.players[1].queues);
  game.rounds = words.as<std::uint64_t>() + 63;
  card.start();
  run_blocks(2, game);
  ok = card.stop().empty() && *game.rounds == 2 * kRounds;
  return std::to_string(*game.rounds) + " messages sent and received";
}

}  // namespace

int main() {
  return sample("sample-rdma-ping-pong", run);
}
