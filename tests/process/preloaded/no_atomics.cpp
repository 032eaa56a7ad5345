/// Preloaded into a program, makes its RDMA devices say that they have no atomic operations.
#include <dlfcn.h>
#include <infiniband/verbs.h>

extern "C" int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  static const auto real =
      reinterpret_cast<decltype(&::ibv_query_device)>(::dlsym(RTLD_NEXT, "ibv_query_device"));
  const int result = real(context, attributes);
  attributes->atomic_cap = IBV_ATOMIC_NONE;
  return result;
}
