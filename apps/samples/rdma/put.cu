/// A sample: a kernel writes to a peer's memory, and waits until that is done.
#include "apps/samples/launch.hpp"
#include "kernels/rdma_tasks/put.hpp"

namespace {

using namespace offload::samples;
namespace rdma = offload::kernels::rdma;

constexpr std::uint32_t kBytes = 64 * 1024;

struct Put {
  rdma::SendQueue queue;
  rdma::LocalBuffer from;
  rdma::RemotePointer to;
  rdma::WorkResult* result;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned) const {
    rdma::ExclusiveQueue own{queue};
    std::uint64_t ticket = 0;
    rdma::WorkResult done = rdma::put(group, own, to, from, patience(), ticket);
    if (done == rdma::WorkResult::done) done = rdma::wait_for(group, own, ticket, patience());
    if (group.lane() == 0) *result = done;
  }
};

std::string run(bool& ok) {
  SampleCard card;
  const Memory queues(card, 2 * SampleCard::queue_bytes(16, 16));
  const Memory source(card, kBytes);
  const Memory target(card, kBytes);
  const Memory result(card, sizeof(rdma::WorkResult));
  const WorkQueues one = card.add_queue(queues.as<char>(), 16, 16);
  const WorkQueues other =
      card.add_queue(queues.as<char>() + SampleCard::queue_bytes(16, 16), 16, 16);
  card.connect(one, other);
  for (std::uint32_t i = 0; i < kBytes; ++i)
    source.as<unsigned char>()[i] = static_cast<unsigned char>(i * 7 % 251);
  card.start();
  run_blocks(
      1, Put{one.send, source.local(0, kBytes), target.remote(), result.as<rdma::WorkResult>()});
  ok = card.stop().empty() && *result.as<rdma::WorkResult>() == rdma::WorkResult::done &&
       std::memcmp(source.as<char>(), target.as<char>(), kBytes) == 0;
  return std::to_string(kBytes) + " bytes written to the peer" + (ok ? "" : ", wrong");
}

}  // namespace

int main() {
  return sample("sample-rdma-put", run);
}
