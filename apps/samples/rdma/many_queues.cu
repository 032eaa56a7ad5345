/// A sample: one block has many queues under way, and takes their completions as they come.
#include "apps/samples/launch.hpp"
#include "kernels/rdma_tasks/put.hpp"

namespace {

using namespace offload::samples;
namespace rdma = offload::kernels::rdma;

constexpr std::uint32_t kQueues = 8;
constexpr std::uint32_t kPuts = 40;  ///< of each
constexpr std::uint32_t kBytes = 256;

struct PutOnAll {
  rdma::SendQueue queues[kQueues];
  rdma::LocalBuffer from;
  rdma::RemotePointer to;
  std::uint32_t* completed;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned) const {
    rdma::ExclusiveQueue own[kQueues];
    std::uint32_t posted[kQueues] = {};
    std::uint64_t last[kQueues] = {};
    bool busy[kQueues] = {};
    std::uint32_t done = 0;
    for (std::uint32_t q = 0; q < kQueues; ++q) own[q].queue = queues[q];
    for (rdma::Wait wait(patience()); done != kQueues * kPuts;) {
      bool worked = false;
      for (std::uint32_t q = 0; q < kQueues; ++q) {
        // A queue has one put under way at a time; the others go on meanwhile.
        if (busy[q] && rdma::look(group, own[q]) != 0 &&
            rdma::is_completed(group, own[q], last[q])) {
          if (rdma::error_of(group, own[q])) return;
          busy[q] = false;
          worked = true;
          ++done;
        }
        if (busy[q] || posted[q] == kPuts) continue;
        const std::uint64_t place = (std::uint64_t{q} * kPuts + posted[q]++) * kBytes;
        const rdma::LocalBuffer here{from.address + place, kBytes, from.lkey};
        const rdma::RemotePointer there{to.address + place, to.rkey};
        if (rdma::put(group, own[q], there, here, patience(), last[q]) != rdma::WorkResult::done)
          return;
        busy[q] = true;
      }
      if (!worked && group.from_first(wait.is_over() ? 1 : 0) != 0) return;
    }
    if (group.lane() == 0) *completed = done;
  }
};

std::string run(bool& ok) {
  constexpr std::size_t kAll = std::size_t{kQueues} * kPuts * kBytes;
  SampleCard card;
  const std::size_t each = SampleCard::queue_bytes(16, 4);
  const Memory rings(card, 2 * kQueues * each);
  const Memory source(card, kAll);
  const Memory target(card, kAll);
  const Memory count(card, 64);
  PutOnAll body{{}, source.local(0, 0), target.remote(), count.as<std::uint32_t>()};
  for (std::size_t q = 0; q < kQueues; ++q) {
    const WorkQueues one = card.add_queue(rings.as<char>() + 2 * q * each, 16, 4);
    card.connect(one, card.add_queue(rings.as<char>() + (2 * q + 1) * each, 16, 4));
    body.queues[q] = one.send;
  }
  for (std::size_t i = 0; i < kAll; ++i)
    source.as<unsigned char>()[i] = static_cast<unsigned char>(i * 11 % 253);
  card.start();
  run_blocks(1, body);
  ok = card.stop().empty() && *body.completed == kQueues * kPuts &&
       std::memcmp(source.as<char>(), target.as<char>(), kAll) == 0;
  return std::to_string(*body.completed) + " puts completed on " + std::to_string(kQueues) +
         " queues" + (ok ? "" : ", wrong");
}

}  // namespace

int main() {
  return sample("sample-rdma-many-queues", run);
}
