#include <dlfcn.h>
#include <fmt/core.h>

#include "backend/services.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "protocol/control.hpp"

namespace offload::backend {
namespace {

using core::Error;
using core::ErrorCode;

Error bad_module(const std::string& path, ErrorCode code, const std::string& what) {
  return {code, fmt::format("service module '{}': {}", core::escaped(path), what)};
}

kernels::ServiceEntry entry_of(const std::string& path, const std::string& name) {
  // A name without a slash would be searched among the libraries of the system. RTLD_LOCAL: symbols
  // of modules are not visible to others.
  const std::string file = name.find('/') == std::string::npos ? "./" + name : name;
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    throw bad_module(path, ErrorCode::not_found,
                     core::escaped(reason != nullptr ? reason : "it cannot be loaded"));
  }
  void* const entry = ::dlsym(library, kernels::kServiceEntry);
  if (entry == nullptr) {
    throw bad_module(
        path, ErrorCode::invalid_value,
        fmt::format("it has no function {}; use OFFLOAD_SERVICE_MODULE", kernels::kServiceEntry));
  }
  return reinterpret_cast<kernels::ServiceEntry>(entry);
}

bool is_complete(const kernels::ServiceInterface& interface) {
  return interface.name != nullptr && interface.make != nullptr && interface.destroy != nullptr &&
         interface.response_length != nullptr && interface.respond != nullptr;
}

}  // namespace

ServiceModule::ServiceModule(std::string path, const std::string& file)
    : path_(std::move(path)), interface_(entry_of(path_, file)()) {
  if (interface_ == nullptr) {
    throw bad_module(path_, ErrorCode::invalid_value, "it defines no service");
  }
  // In other versions only the first two members are the same.
  if (interface_->version != kernels::kServiceInterface || interface_->size != sizeof *interface_) {
    throw bad_module(path_, ErrorCode::unsupported_version,
                     fmt::format("it was built for version {} of the service interface; this "
                                 "worker has version {}: build it with the headers of this release",
                                 interface_->version, kernels::kServiceInterface));
  }
  if (!is_complete(*interface_) || !protocol::is_service_name(interface_->name)) {
    throw bad_module(path_, ErrorCode::invalid_value,
                     fmt::format("the name of its service is not 1 to {} of a-z, 0-9, - and _, or "
                                 "the service lacks a function",
                                 protocol::kMaxServiceName));
  }
}

}  // namespace offload::backend
