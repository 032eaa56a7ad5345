/// A sample: adds to a word of the peer's memory, then replaces it if it is what is expected.
#include <cstring>

#include "apps/samples/rdma/tasks/end.hpp"

namespace {

using namespace offload;

std::uint64_t word_of(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

void requester(samples::End& end) {
  auto adds = end.tasks<rdma::FetchAndAddTask>();
  auto swaps = end.tasks<rdma::CompareAndSwapTask>();
  end.start();
  end.connect();
  rdma::FetchAndAddTask& add = samples::taken(adds);
  const auto before_add = end.room(0, 8);
  add.destination = before_add.get();
  add.at = end.there(64, 8);
  add.add = 40;
  end.run(add);
  rdma::CompareAndSwapTask& swap = samples::taken(swaps);
  const auto before_swap = end.room(8, 8);
  swap.destination = before_swap.get();
  swap.at = end.there(64, 8);
  swap.compare = 42;
  swap.swap = 1000;
  end.run(swap);
  fmt::print("before the add {}, before the swap {}", word_of(before_add->data()),
             word_of(before_swap->data()));
  std::fflush(stdout);
  end.wait_for_peer();
}

void responder(samples::End& end) {
  const std::uint64_t first = 2;
  std::memcpy(end.bytes(64, 8).data(), &first, sizeof first);
  end.start();
  end.connect();
  end.wait_for_peer();
  fmt::print(", now {}\n", word_of(end.bytes(64, 8)));
  std::fflush(stdout);
}

}  // namespace

int main() {
  return samples::two_ends("sample-rdma-tasks-atomic", requester, responder);
}
