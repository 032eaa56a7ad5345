#include "softcard/preload/cuda_driver.hpp"

#include <dlfcn.h>

#include <type_traits>

namespace offload::softcard {
namespace {

/// Takes all functions from a library. Returns false if it lacks one.
bool take(void* library, CudaDriver& driver) noexcept {
  const auto find = [library](auto& function, const char* name) {
    void* const found = ::dlsym(library, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    return found != nullptr;
  };
  return find(driver.pointer_attribute, "cuPointerGetAttribute") &&
         find(driver.push_context, "cuCtxPushCurrent_v2") &&
         find(driver.pop_context, "cuCtxPopCurrent_v2") &&
         find(driver.create_stream, "cuStreamCreate") &&
         find(driver.query_stream, "cuStreamQuery") &&
         find(driver.copy_to_host, "cuMemcpyDtoHAsync_v2") &&
         find(driver.copy_to_device, "cuMemcpyHtoDAsync_v2") &&
         find(driver.allocate_host, "cuMemHostAlloc") && find(driver.free_host, "cuMemFreeHost");
}

}  // namespace

const CudaDriver* CudaDriver::loaded() noexcept {
  static CudaDriver driver;
  static bool is_complete = false;
  if (is_complete) return &driver;
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;  // a program may load it later
  is_complete = take(library, driver);
  return is_complete ? &driver : nullptr;
}

}  // namespace offload::softcard
