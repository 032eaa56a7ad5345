#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/graph/batch.hpp"
#include "kernels/persistent_worker.hpp"
#include "kernels/serve.hpp"

struct CUstream_st;
struct CUgraph_st;
struct CUgraphNode_st;

/// The interface by which a worker calls a service: plain functions and structs, the same for
/// built-in services and those of modules. A module is a shared library with one function
/// (kServiceEntry) that returns a ServiceInterface. No exception crosses these functions.
namespace offload::kernels {

/// The types of an extension's forms (kernels/packets/datagram_worker.hpp).
namespace packets {
struct Queue;
template <class AnyQueue>
struct DatagramWorkOf;
using DatagramWork = DatagramWorkOf<Queue>;
struct DatagramState;
struct DatagramStaging;
}  // namespace packets

/// Incremented with every change of the declarations here, of the channel's layout and of the
/// functions' parameters.
inline constexpr std::uint32_t kServiceInterface = 4;
static_assert(sizeof(ChannelView) == 64 && sizeof(Staging) == 10560 && sizeof(Received) == 12 &&
                  sizeof(PersistentWorker) == 40 && sizeof(DeviceChannel) == 120 &&
                  sizeof(LaunchBatch) == 24,
              "modules have these too: a new size is a new kServiceInterface");

/// The name of the function that a module exports, of type ServiceEntry.
inline constexpr const char* kServiceEntry = "offload_service";

/// A service's object is made for threads of a CPU, or for a GPU by the number that CUDA gives it.
inline constexpr std::int32_t kOnCpu = -1;

/// One --service-option. Texts outlive make().
struct ServiceOption {
  const char* key;
  const char* value;
  bool read;  ///< set by the service that reads it: one that none reads is a mistake
};

/// The input and the output of make().
struct ServiceMaking {
  std::int32_t device;  ///< kOnCpu, or which GPU
  ServiceOption* options;
  std::size_t option_count;
  std::uint64_t bytes;  ///< of memory that the object has where it serves
  char error[512];      ///< why there is none; empty: no memory
};

/// A service. All functions but make() and destroy() are called with an object that make()
/// returned.
struct ServiceInterface {
  std::uint32_t size;     ///< of this struct, bytes
  std::uint32_t version;  ///< kServiceInterface
  const char* name;

  /// Makes an object; null, with the reason in `making`, if it cannot be made. For a GPU it also
  /// loads the kernels.
  void* (*make)(ServiceMaking* making);
  /// Frees it and its memory, when nothing serves with it any more.
  void (*destroy)(void* object);

  /// Bytes of the answer to a request of `length`.
  std::uint32_t (*response_length)(const void* object, std::uint32_t length);
  /// respond() of serve.hpp by a CPU thread. Several at once.
  Response (*respond)(const void* object, const ChannelView* channel, std::uint64_t sequence,
                      Staging* staging, Received received);
  /// DatagramWorker::turn() by a CPU thread. Several at once, with a state and a staging each.
  /// Null in a module without the extension, as launch_datagrams is.
  bool (*serve_datagrams)(const void* object, const packets::DatagramWork* work,
                          packets::DatagramState* state, packets::DatagramStaging* staging,
                          bool* had_work);

  // Null in a module without code for a GPU. They return a cudaError_t.

  /// launch_persistent_worker() of persistent_worker.cuh.
  int (*launch)(const void* object, const PersistentWorker* worker, double* taken,
                CUstream_st* stream);
  /// add_batch_kernel() of graph/batch_kernel.cuh.
  int (*add_batch_kernel)(const void* object, const LaunchBatch* batch, CUgraph_st* graph,
                          CUgraphNode_st* after, CUgraphNode_st** node);
  /// launch_datagram_worker() of packets/datagram_kernel.cuh.
  int (*launch_datagrams)(const void* object, const packets::DatagramWork* works,
                          std::uint32_t count, CUstream_st* stream);
};

using ServiceEntry = const ServiceInterface* (*)();

}  // namespace offload::kernels
