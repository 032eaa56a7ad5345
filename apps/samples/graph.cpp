/// A sample of a graph: one node makes the SHA-256 of a buffer while another copies it; when both
/// are done, a callback compares the bytes. Several instances are in flight at once, on one thread.
#include "tasks/progress/graph.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "tasks/copy/memory_copy_context.hpp"
#include "tasks/digest/digest_context.hpp"
#include "tasks/memory/buffer_pool.hpp"

namespace {

using namespace offload;

constexpr std::size_t kInstances = 8;
constexpr std::size_t kRuns = 100;
constexpr std::size_t kBytes = 64U << 10;
constexpr core::Duration kPatience = std::chrono::seconds(30);

/// The buffers and tasks of one instance.
struct InstanceData {
  memory::BufferRef source;
  memory::BufferRef destination;
  digest::DigestTask* hash = nullptr;
  copy::CopyTask* copy = nullptr;
};

core::Status compare(progress::GraphInstance&, void* data) {
  const InstanceData& job = *static_cast<const InstanceData*>(data);
  return std::ranges::equal(job.source->data(), job.destination->data())
             ? core::Status{}
             : core::ErrorCode::io_failed;
}

/// Counts completed instances, and submits each again until there were kRuns.
struct Runs {
  progress::Context* graph;
  std::size_t started = 0;
  std::size_t right = 0;
  std::size_t wrong = 0;
  std::string last_hash;  ///< of the instance that ended last

  static void completed(progress::GraphInstance& instance, void* object) {
    auto& runs = *static_cast<Runs*>(object);
    ++runs.right;
    runs.last_hash = static_cast<const InstanceData*>(instance.user_data)->hash->hex();
    runs.start(instance);
  }
  static void failed(progress::GraphInstance&, void* object) {
    ++static_cast<Runs*>(object)->wrong;
  }
  void start(progress::GraphInstance& instance) {
    if (started == kRuns || wrong != 0) return;
    auto& job = *static_cast<InstanceData*>(instance.user_data);
    std::ranges::fill(job.source->data(), static_cast<std::byte>(started));
    job.destination->reset();
    if (graph->submit(instance).ok()) {
      ++started;
    } else {
      ++wrong;
    }
  }
};

template <class Task>
void no_callback(Task&, void*) {}  // completions are reported to the graph, not to the pool

int run() {
  memory::MemoryRegion region({"jobs"}, {memory::allocate_range(2 * kInstances * kBytes)});
  region.start();
  memory::BufferPool buffers(region, kBytes, 2 * kInstances);
  buffers.start();
  progress::Engine engine;
  digest::DigestContext hasher(digest::Algorithm::sha256);
  copy::MemoryCopyContext copier;
  progress::TaskPool<digest::DigestTask> hashes(hasher, kInstances, {no_callback, no_callback});
  progress::TaskPool<copy::CopyTask> copies(copier, kInstances, {no_callback, no_callback});
  Runs runs{};
  progress::Graph graph("hash and copy", kInstances, {&Runs::completed, &Runs::failed, &runs});
  runs.graph = &graph;

  const auto hash = graph.add_node("hash", hasher);
  const auto copy = graph.add_node("copy", copier);
  const auto compared = graph.add_node("compare", compare);
  graph.add_dependency(hash, compared);
  graph.add_dependency(copy, compared);
  for (progress::Context* context :
       {static_cast<progress::Context*>(&hasher), static_cast<progress::Context*>(&copier),
        static_cast<progress::Context*>(&graph)}) {
    context->connect(engine);
    context->start();
  }

  std::array<InstanceData, kInstances> jobs;
  for (InstanceData& job : jobs) {
    progress::GraphInstance& instance = *graph.allocate();
    job.source = buffers.take();
    job.destination = buffers.take();
    if (!job.source->append(kBytes)) throw core::Error(core::ErrorCode::unexpected, "no room");
    job.hash = hashes.allocate();
    job.hash->source = job.source;
    job.copy = copies.allocate();
    job.copy->source = job.source;
    job.copy->destination = job.destination;
    instance.user_data = &job;
    const bool bound = instance.bind_task(hash, *job.hash).ok() &&
                       instance.bind_task(copy, *job.copy).ok() &&
                       instance.bind_data(compared, &job).ok();
    if (!bound) throw core::Error(core::ErrorCode::unexpected, "cannot bind");
    runs.start(instance);
  }

  engine.run_until([&] { return graph.in_flight() == 0; }, kPatience);
  for (progress::Context* context :
       {static_cast<progress::Context*>(&graph), static_cast<progress::Context*>(&copier),
        static_cast<progress::Context*>(&hasher)}) {
    context->stop();
  }
  fmt::print(
      "SHA-256 of the last: {}\n"
      "{} copies compared, {} right, {} wrong\n",
      runs.last_hash, runs.right + runs.wrong, runs.right, runs.wrong);
  return runs.right == kRuns ? 0 : 1;
}

}  // namespace

int main() {
  return offload::core::exit_status_of("sample-graph", run);
}
