#pragma once

#include <cstddef>
#include <cstdint>

namespace offload::softcard {

/// The functions of CUDA's driver that copies need, taken from its library when a process has it:
/// the software card is built without CUDA. Types and numbers are those of cuda.h.
struct CudaDriver {
  using Context = void*;
  using Stream = void*;
  using Address = unsigned long long;

  static constexpr int kSuccess = 0;
  static constexpr int kNotReady = 600;
  static constexpr int kOfContext = 1;     ///< CU_POINTER_ATTRIBUTE_CONTEXT
  static constexpr int kOfMemoryType = 2;  ///< CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  static constexpr unsigned kDeviceMemory = 2;
  static constexpr unsigned kNonBlocking =
      1;  ///< a stream that the default stream does not wait for

  /// Returns the driver of this process, or null if no driver is loaded.
  static const CudaDriver* loaded() noexcept;

  int (*pointer_attribute)(void* value, int attribute, Address address) = nullptr;
  int (*push_context)(Context context) = nullptr;
  int (*pop_context)(Context* context) = nullptr;
  int (*create_stream)(Stream* stream, unsigned flags) = nullptr;
  int (*query_stream)(Stream stream) = nullptr;
  int (*copy_to_host)(void* to, Address from, std::size_t bytes, Stream stream) = nullptr;
  int (*copy_to_device)(Address to, const void* from, std::size_t bytes, Stream stream) = nullptr;
  int (*allocate_host)(void** memory, std::size_t bytes, unsigned flags) = nullptr;
  int (*free_host)(void* memory) = nullptr;
};

}  // namespace offload::softcard
