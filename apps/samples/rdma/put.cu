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
  rdma::RemoteBuffer to;
  rdma::Result* result;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned) const {
    rdma::ExclusiveQueue own{queue};
    std::uint64_t ticket = 0;
    rdma::Result done = rdma::put(group, own, to, from, patience(), ticket);
    if (done == rdma::Result::done) done = rdma::wait_for(group, own, ticket, patience());
    if (group.lane() == 0) *result = done;
  }
};

std::string run(bool& ok) {
  Card card;
  const Memory queues(card, 2 * Card::queue_bytes(16, 16));
  const Memory source(card, kBytes);
  const Memory target(card, kBytes);
  const Memory result(card, sizeof(rdma::Result));
  const QueuePair one = card.add_queue(queues.as<char>(), 16, 16);
  const QueuePair other = card.add_queue(queues.as<char>() + Card::queue_bytes(16, 16), 16, 16);
  card.connect(one, other);
  for (std::uint32_t i = 0; i < kBytes; ++i)
    source.as<unsigned char>()[i] = static_cast<unsigned char>(i * 7 % 251);
  card.start();
  run_blocks(1, Put{one.send, source.local(0, kBytes), target.remote(), result.as<rdma::Result>()});
  ok = card.stop().empty() && *result.as<rdma::Result>() == rdma::Result::done &&
       std::memcmp(source.as<char>(), target.as<char>(), kBytes) == 0;
  return std::to_string(kBytes) + " bytes written to the peer" + (ok ? "" : ", wrong");
}

}  // namespace

int main() {
  return sample("sample-rdma-put", run);
}
