// Posts a write to a send queue without memory, which is refused: that the headers compile is the
// test. compile.
#include <kernels/group.hpp>
#include <kernels/rdma_tasks/put.hpp>

namespace rdma = offload::kernels::rdma;

int main() {
  rdma::ExclusiveQueue queue{rdma::SendQueue{}};
  std::uint64_t ticket = 0;
  const auto result =
      rdma::put(offload::kernels::SingleLane{}, queue, {}, {}, rdma::WaitLimit{1000}, ticket);
  return result == rdma::WorkResult::invalid ? 0 : 1;
}
