/// A sample: one block puts lines of numbers into the other's memory, each with a signal; the other
/// polls the word of the signal, and sums up what has come.
#include "apps/samples/launch.hpp"
#include "kernels/rdma_tasks/put.hpp"

namespace {

using namespace offload::samples;
namespace rdma = offload::kernels::rdma;

constexpr std::uint32_t kLines = 200;
constexpr std::uint32_t kNumbers = 32;
constexpr std::uint32_t kLine = kNumbers * sizeof(std::uint32_t);

struct PutAndSum {
  rdma::SendQueue queue;
  rdma::LocalBuffer lines;    ///< of the first block
  rdma::RemotePointer to;     ///< the second's room for them
  rdma::Signal signal;        ///< of the second
  const std::uint32_t* room;  ///< the same, as the second block reads it
  const std::uint64_t* signals;
  std::uint64_t* sum;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned block) const {
    if (block == 0) {
      put_all(group);
    } else {
      sum_up(group);
    }
  }
  template <class Group>
  OFFLOAD_HOST_DEVICE void put_all(const Group& group) const {
    rdma::ExclusiveQueue own{queue};
    for (std::uint64_t i = 0; i < kLines; ++i) {
      std::uint64_t ticket = 0;
      const rdma::LocalBuffer line{lines.address + i * kLine, kLine, lines.lkey};
      const rdma::RemotePointer there{to.address + i * kLine, to.rkey};
      const auto put = rdma::put_with_signal(group, own, there, line, signal, patience(), ticket);
      if (put != rdma::WorkResult::done) return;
    }
    rdma::flush(group, own, patience());
  }
  template <class Group>
  OFFLOAD_HOST_DEVICE void sum_up(const Group& group) const {
    std::uint64_t total = 0;
    for (std::uint32_t i = 0; i < kLines; ++i) {
      if (rdma::wait_signal(group, signals, i + 1, patience()) != rdma::WorkResult::done) return;
      for (std::uint32_t n = 0; n < kNumbers; ++n) total += room[i * kNumbers + n];
    }
    if (group.lane() == 0) *sum = total;
  }
};

std::string run(bool& ok) {
  SampleCard card;
  const std::size_t each = SampleCard::queue_bytes(64, 16);
  const Memory queues(card, 2 * each);
  const Memory lines(card, std::size_t{kLines} * kLine);
  const Memory room(card, std::size_t{kLines} * kLine);
  const Memory words(card, 3 * 64);  // the signal, what was in it, the sum
  const WorkQueues one = card.add_queue(queues.as<char>(), 64, 16);
  card.connect(one, card.add_queue(queues.as<char>() + each, 64, 16));
  std::uint64_t expected = 0;
  for (std::uint32_t i = 0; i < kLines * kNumbers; ++i) {
    expected += lines.as<std::uint32_t>()[i] = i * i;
  }
  card.start();
  run_blocks(2, PutAndSum{one.send,
                          lines.local(0, 0),
                          room.remote(),
                          {words.remote(), 1, words.local(64, 8)},
                          room.as<std::uint32_t>(),
                          words.as<std::uint64_t>(),
                          words.as<std::uint64_t>() + 16});
  const std::uint64_t sum = words.as<std::uint64_t>()[16];
  ok = card.stop().empty() && sum == expected;
  return std::to_string(kLines) + " lines put, the sum of the numbers is " + std::to_string(sum);
}

}  // namespace

int main() {
  return sample("sample-rdma-put-with-signal", run);
}
