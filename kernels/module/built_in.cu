#include <tuple>

#include "kernels/module/built_in.hpp"
#include "kernels/module/service_module.hpp"
#include "kernels/services.hpp"

// Compiled by nvcc, or as C++ in a build without CUDA.
namespace offload::kernels {
namespace {

template <class Service>
const ServiceInterface* built_in() {
  static const ServiceInterface interface = whole_interface_to<Service>();
  return &interface;
}

template <class... All>
std::vector<const ServiceInterface*> interfaces_to(const std::tuple<All...>* /*types*/) {
  return {built_in<All>()...};
}

}  // namespace

const std::vector<const ServiceInterface*>& built_in_services() {
  static const auto all = interfaces_to(static_cast<const Services*>(nullptr));
  return all;
}

}  // namespace offload::kernels
