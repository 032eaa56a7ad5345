/// A sample: a sync event of the responder. The requester sets it to 1, gets it again and again
/// until the responder has set it to 2, and sets it to 3.
#include "apps/samples/rdma/tasks/end.hpp"
#include "rdma_tasks/remote_sync_event.hpp"

namespace {

using namespace offload;
using Action = rdma::RemoteSyncEventTask::Action;

void requester(samples::End& end) {
  auto tasks = end.tasks<rdma::RemoteSyncEventTask>();
  end.start();
  end.connect();
  rdma::RemoteSyncEventTask& task = samples::taken(tasks);
  const auto scratch = end.room(0, 8);
  task.scratch = scratch.get();
  task.event = rdma::import_sync_event(end.receive());
  task.action = Action::set;
  task.argument = 1;
  end.run(task);
  task.action = Action::get;
  const auto limit = core::Clock::now() + samples::kPatience;
  do {
    if (core::Clock::now() > limit) {
      throw core::Error(core::ErrorCode::timed_out, "the responder did not set its event in time");
    }
    end.run(task);
  } while (task.result < 2);
  task.action = Action::set;
  task.argument = 3;
  end.run(task);
  end.wait_for_peer();
}

void responder(samples::End& end) {
  sync::SyncEvent event({.name = "sample", .publisher = sync::Publisher::peer});
  const rdma::ExportedSyncEvent exported(event, end.registrar);
  end.start();
  end.connect();
  end.send(exported.blob());
  const auto wait_for = [&](std::uint64_t value) {
    if (event.wait_greater(value - 1, sync::WaitMode::block, samples::kPatience)) return;
    throw core::Error(core::ErrorCode::timed_out, "the requester did not set the event in time");
  };
  wait_for(1);
  event.set(2);
  wait_for(3);
  fmt::print("1 from there, 2 from here, {} from there\n", event.get());
  std::fflush(stdout);
  end.wait_for_peer();
}

}  // namespace

int main() {
  return samples::two_ends("sample-rdma-tasks-sync-event", requester, responder);
}
