#pragma once

#include "kernels/module/service_forms.hpp"

/// Makes a module of the file that includes this: a service's type, and behind it
///
///   OFFLOAD_SERVICE_MODULE(MyService)
///
/// outside of all namespaces, once. docs/reference/services.md says how it is written, compiled and
/// loaded.
#define OFFLOAD_SERVICE_MODULE(Service)                                                       \
  extern "C" __attribute__((visibility("default"))) const offload::kernels::ServiceInterface* \
  offload_service() {                                                                         \
    static const offload::kernels::ServiceInterface interface =                               \
        offload::kernels::interface_to<Service>();                                            \
    return &interface;                                                                        \
  }                                                                                           \
  static_assert(true, "takes the semicolon")
