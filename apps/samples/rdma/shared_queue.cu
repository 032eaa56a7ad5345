/// A sample: many blocks post to one queue. Each draws numbers from a counter in the peer's memory,
/// as no two may have the same.
#include "apps/samples/launch.hpp"
#include "kernels/rdma_tasks/put.hpp"

namespace {

using namespace offload::samples;
namespace rdma = offload::kernels::rdma;

constexpr std::uint32_t kBlocks = 8;
constexpr std::uint32_t kDraws = 50;

struct Draw {
  rdma::SharedQueue queue;
  rdma::RemotePointer counter;
  rdma::LocalBuffer drawn;  ///< 8 bytes for each draw

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned block) const {
    for (std::uint32_t i = 0; i < kDraws; ++i) {
      const std::uint64_t place = std::uint64_t{block} * kDraws + i;
      const rdma::LocalBuffer own{drawn.address + place * 8, 8, drawn.lkey};
      std::uint64_t ticket = 0;
      if (rdma::fetch_add(group, queue, counter, 1, own, patience(), ticket) !=
          rdma::WorkResult::done) {
        return;
      }
      if (rdma::wait_for(group, queue, ticket, patience()) != rdma::WorkResult::done) return;
    }
  }
};

std::string run(bool& ok) {
  constexpr std::uint32_t kRing = 16;  // shorter than what the blocks have under way at most
  SampleCard card;
  const Memory queues(card, 2 * SampleCard::queue_bytes(kRing, 4));
  const Memory state(card, sizeof(rdma::SharedSendState));
  const Memory marks(card, kRing * sizeof(std::uint64_t));
  const Memory counter(card, 8);
  const Memory drawn(card, std::size_t{kBlocks} * kDraws * 8);
  const WorkQueues one = card.add_queue(queues.as<char>(), kRing, 4);
  card.connect(one,
               card.add_queue(queues.as<char>() + SampleCard::queue_bytes(kRing, 4), kRing, 4));
  card.start();
  run_blocks(kBlocks, Draw{{one.send, state.as<rdma::SharedSendState>(), marks.as<std::uint64_t>()},
                           counter.remote(),
                           drawn.local(0, 0)});
  std::vector<int> seen(std::size_t{kBlocks} * kDraws);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const std::uint64_t number = drawn.as<std::uint64_t>()[i];
    if (number < seen.size()) ++seen[number];
  }
  ok = card.stop().empty();
  for (const int count : seen) ok = ok && count == 1;
  return std::to_string(seen.size()) + " numbers drawn by " + std::to_string(kBlocks) +
         " blocks, each " + (ok ? "once" : "not once");
}

}  // namespace

int main() {
  return sample("sample-rdma-shared-queue", run);
}
