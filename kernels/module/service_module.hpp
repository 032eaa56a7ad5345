#pragma once

#include "kernels/module/service_forms.hpp"

#if __has_include("kernels/packets/service_forms.hpp")
#include "kernels/packets/service_forms.hpp"
#define OFFLOAD_HAS_DATAGRAM_FORMS
#endif

namespace offload::kernels {

/// interface_to() with the forms of the extensions whose headers are there.
template <class Service>
ServiceInterface whole_interface_to() {
  ServiceInterface made = interface_to<Service>();
#if defined(OFFLOAD_HAS_DATAGRAM_FORMS)
  packets::add_forms<Service>(made);
#endif
  return made;
}

}  // namespace offload::kernels

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
        offload::kernels::whole_interface_to<Service>();                                      \
    return &interface;                                                                        \
  }                                                                                           \
  static_assert(true, "takes the semicolon")
