/// A sample: reads the peer's memory, which takes no part in it; the bytes go into two buffers.
#include "apps/samples/rdma/tasks/end.hpp"

namespace {

using namespace offload;

void requester(samples::End& end) {
  auto reads = end.tasks<rdma::ReadTask>();
  end.start();
  end.connect();
  rdma::ReadTask& read = samples::taken(reads);
  const auto head = end.room(0, 4);
  auto tail = end.room(100, 60);
  const memory::BufferRef second = tail;
  if (!head->append_chain(tail)) throw core::Error(core::ErrorCode::unexpected, "no list");
  read.destination = head.get();
  read.from = end.there(1000, 12);
  read.length = 12;
  end.run(read);
  fmt::print("read: {}|{}\n", samples::text_of(head->data()), samples::text_of(second->data()));
  end.wait_for_peer();
}

void responder(samples::End& end) {
  const auto text = end.text(1000, "what is here");
  end.start();
  end.connect();
  end.wait_for_peer();
}

}  // namespace

int main() {
  return samples::two_ends("sample-rdma-tasks-read", requester, responder);
}
