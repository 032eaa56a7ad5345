/// A sample: a message, and one with an immediate, into receives that were posted before.
#include "apps/samples/rdma/tasks/end.hpp"

namespace {

using namespace offload;

void requester(samples::End& end) {
  auto sends = end.tasks<rdma::SendTask>();
  end.start();
  end.connect();
  rdma::SendTask& send = samples::taken(sends);
  const auto message = end.text(0, "hello");
  send.source = message.get();
  end.run(send);
  send.immediate = 7;
  end.run(send);
  end.wait_for_peer();
}

void responder(samples::End& end) {
  auto receives = end.tasks<rdma::ReceiveTask>();
  end.start();
  const auto first = end.room(0, 64);
  const auto second = end.room(64, 64);
  rdma::ReceiveTask& plain = samples::taken(receives);
  rdma::ReceiveTask& with_immediate = samples::taken(receives);
  plain.destination = first.get();
  with_immediate.destination = second.get();
  end.submit(plain);  // before the peer can send
  end.submit(with_immediate);
  end.connect();
  end.finish(plain);
  end.finish(with_immediate);
  fmt::print("received: {}, and {} with {}\n", samples::text_of(first->data()),
             samples::text_of(second->data()), with_immediate.immediate().value());
  std::fflush(stdout);
  end.wait_for_peer();
}

}  // namespace

int main() {
  return samples::two_ends("sample-rdma-tasks-send", requester, responder);
}
