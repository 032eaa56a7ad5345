/// A sample: a kernel has the card copy memory, on a queue that is connected to itself; what DMA
/// engines of a DPU are used for.
#include "apps/samples/launch.hpp"
#include "kernels/rdma_tasks/put.hpp"

namespace {

using namespace offload::samples;
namespace rdma = offload::kernels::rdma;

constexpr std::uint32_t kPieces = 24;
constexpr std::uint32_t kPiece = 16 * 1024;

/// Copies the pieces in reverse order, with one doorbell for all.
struct CopyReversed {
  rdma::SendQueue queue;
  rdma::LocalBuffer from;
  rdma::RemotePointer to;
  rdma::WorkResult* result;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned) const {
    rdma::ExclusiveQueue own{queue};
    rdma::LocalBuffer piece{};
    const auto copy = [&](std::uint32_t i) {
      piece = {from.address + std::uint64_t{i} * kPiece, kPiece, from.lkey};
      const std::uint64_t place = std::uint64_t{kPieces - 1 - i} * kPiece;
      rdma::SendWork work;
      work.opcode = rdma::Opcode::rdma_write;
      work.remote = {to.address + place, to.rkey};
      work.buffers = &piece;
      work.buffer_count = 1;
      return work;
    };
    std::uint64_t ticket = 0;
    rdma::WorkResult done = rdma::post(group, own, kPieces, copy, patience(), ticket);
    if (done == rdma::WorkResult::done) done = rdma::wait_for(group, own, ticket, patience());
    if (group.lane() == 0) *result = done;
  }
};

std::string run(bool& ok) {
  constexpr std::size_t kAll = std::size_t{kPieces} * kPiece;
  SampleCard card;
  const Memory ring(card, SampleCard::queue_bytes(32, 4));
  const Memory source(card, kAll);
  const Memory target(card, kAll);
  const Memory result(card, 64);
  const WorkQueues loop = card.add_queue(ring.as<char>(), 32, 4);
  card.connect(loop, loop);
  for (std::size_t i = 0; i < kAll; ++i)
    source.as<unsigned char>()[i] = static_cast<unsigned char>(i / kPiece + i % 100);
  card.start();
  run_blocks(1, CopyReversed{loop.send, source.local(0, 0), target.remote(),
                             result.as<rdma::WorkResult>()});
  ok = card.stop().empty() && *result.as<rdma::WorkResult>() == rdma::WorkResult::done;
  for (std::size_t i = 0; i < kPieces; ++i) {
    ok = ok && std::memcmp(source.as<char>() + i * kPiece,
                           target.as<char>() + (kPieces - 1 - i) * kPiece, kPiece) == 0;
  }
  return std::to_string(kPieces) + " pieces of " + std::to_string(kPiece) + " bytes copied" +
         (ok ? "" : ", wrong");
}

}  // namespace

int main() {
  return sample("sample-rdma-copy", run);
}
