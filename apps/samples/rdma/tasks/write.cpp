/// A sample: a write that the peer is told of by other means, and one with an immediate, which
/// takes one of its receives.
#include "apps/samples/rdma/tasks/end.hpp"

namespace {

using namespace offload;

void requester(samples::End& end) {
  auto writes = end.tasks<rdma::WriteTask>();
  end.start();
  end.connect();
  rdma::WriteTask& write = samples::taken(writes);
  const auto first = end.text(0, "written");
  write.source = first.get();
  write.to = end.there(100, first->data().size());
  end.run(write);
  end.wait_for_peer();  // it looks only then
  const auto second = end.text(32, "and told");
  write.source = second.get();
  write.to = end.there(200, second->data().size());
  write.immediate = 9;
  end.run(write);
  end.wait_for_peer();
}

void responder(samples::End& end) {
  auto receives = end.tasks<rdma::ReceiveTask>();
  end.start();
  rdma::ReceiveTask& receive = samples::taken(receives);
  end.submit(receive);  // needs no room: the bytes go elsewhere
  end.connect();
  end.wait_for_peer();
  const std::string first = samples::text_of(end.bytes(100, 7));
  end.finish(receive);
  if (!receive.written_elsewhere()) {
    throw core::Error(core::ErrorCode::unexpected, "that was a message");
  }
  fmt::print("{}, {} by {}\n", first, samples::text_of(end.bytes(200, receive.length())),
             receive.immediate().value());
  std::fflush(stdout);
  end.wait_for_peer();
}

}  // namespace

int main() {
  return samples::two_ends("sample-rdma-tasks-write", requester, responder);
}
