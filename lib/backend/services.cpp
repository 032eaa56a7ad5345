#include "backend/services.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <new>

#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "kernels/module/built_in.hpp"
#include "protocol/control.hpp"

namespace offload::backend {
namespace {

using core::Error;
using core::ErrorCode;

/// Returns the options for `service`, without the part before the dot.
std::vector<kernels::ServiceOption> options_for(const std::string& service,
                                                const ServiceOptions& all) {
  std::vector<kernels::ServiceOption> own;
  for (const auto& [key, value] : all) {
    const auto dot = key.find('.');
    if (dot != std::string::npos && key.substr(0, dot) != service) continue;
    own.push_back({key.c_str() + (dot == std::string::npos ? 0 : dot + 1), value.c_str(), false});
  }
  return own;
}

}  // namespace

bool add_service_option(ServiceOptions& options, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) return false;
  options.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return true;
}

Services::Services(const std::vector<std::string>& modules, ServiceOptions options)
    : options_(std::move(options)) {
  for (const std::string& path : modules) add(path, path);
}

void Services::add(const std::string& path, const std::string& file) {
  ServiceModule module(path, file);
  const std::string name = module.interface().name;
  const auto known = names();
  if (std::find(known.begin(), known.end(), name) != known.end()) {
    throw Error(ErrorCode::already_exists,
                fmt::format("service module '{}': a service '{}' already exists",
                            core::escaped(path), name));
  }
  modules_.push_back(std::move(module));
  // The limit of the message that lists them to the server.
  if (const std::size_t count = names().size(); count > protocol::kMaxServices) {
    throw Error(ErrorCode::invalid_value,
                fmt::format("{} services, built in and from modules; at most {} are allowed", count,
                            protocol::kMaxServices));
  }
}

std::vector<std::string> Services::names() const {
  std::vector<std::string> names;
  for (const auto* service : kernels::built_in_services()) names.emplace_back(service->name);
  for (const auto& module : modules_) names.emplace_back(module.interface().name);
  return names;
}

const kernels::ServiceInterface& Services::find(const std::string& name) const {
  for (const auto* service : kernels::built_in_services()) {
    if (name == service->name) return *service;
  }
  for (const auto& module : modules_) {
    if (name == module.interface().name) return module.interface();
  }
  throw Error(ErrorCode::not_found, "no service '" + core::escaped(name) + "'");
}

ServiceObject::ServiceObject(const kernels::ServiceInterface& interface, std::int32_t device,
                             std::vector<kernels::ServiceOption>& options)
    : interface_(&interface), object_(nullptr, interface.destroy) {
  if (device != kernels::kOnCpu &&
      (interface.launch == nullptr || interface.add_batch_kernel == nullptr)) {
    throw Error(ErrorCode::not_supported,
                fmt::format("service {} has no code for a GPU: its module was compiled without "
                            "nvcc; --backend cpu serves it",
                            interface.name));
  }
  kernels::ServiceMaking making{};
  making.device = device;
  making.options = options.data();
  making.option_count = options.size();
  object_.reset(interface.make(&making));
  if (!object_) {
    making.error[sizeof making.error - 1] = '\0';
    const std::string reason =
        making.error[0] != '\0' ? core::escaped(making.error) : core::what_of(std::bad_alloc());
    throw Error(ErrorCode::initialization,
                fmt::format("cannot create service {}: {}", interface.name, reason));
  }
  bytes_ = making.bytes;
}

void ServiceObject::check_lengths(const kernels::ChannelLayout& layout) {
  const std::pair lengths(layout.max_request, layout.max_response);
  if (checked_ == lengths) return;
  for (std::uint32_t length = 0; length <= layout.max_request; ++length) {
    const std::uint32_t response = interface_->response_length(get(), length);
    if (response <= std::max(length, layout.max_response)) continue;
    throw Error(ErrorCode::invalid_value,
                fmt::format("service {} answers {} bytes to a request of {}; at most {} are "
                            "allowed (the server's --max-response-length; {} with --backend graph)",
                            interface_->name, response, length,
                            std::max(length, layout.max_response), kernels::kLeastRoom));
  }
  checked_ = lengths;
}

ServiceObjects::ServiceObjects(Services services, std::int32_t device)
    : services_(std::move(services)), device_(device) {
  ServiceOptions unread = services_.options();
  for (const ServiceModule& module : services_.modules()) {
    const std::string name = module.interface().name;
    auto options = options_for(name, services_.options());
    const auto& object =
        *made_.emplace(name, std::make_unique<ServiceObject>(module.interface(), device_, options))
             .first->second;
    std::string text;
    for (const auto& option : options) {
      if (!option.read) continue;
      text += fmt::format(", {}={}", option.key, core::escaped(option.value));
      std::erase_if(unread, [&](const auto& entry) {
        return entry.second == option.value &&
               (entry.first == option.key || entry.first == name + "." + option.key);
      });
    }
    core::log_info("service {} of {} is ready: {} bytes of memory {}{}", name,
                   core::escaped(module.path()), object.bytes(),
                   device_ == kernels::kOnCpu ? "on the CPU" : "on the GPU", text);
  }
  if (!unread.empty()) {
    throw Error(ErrorCode::invalid_value,
                fmt::format("--service-option {}: no service of a --service-module uses it",
                            core::escaped(unread.front().first)));
  }
}

ServiceObject& ServiceObjects::make(const std::string& name) {
  auto& made = made_[name];
  if (!made) {
    std::vector<kernels::ServiceOption> none;
    made = std::make_unique<ServiceObject>(services_.find(name), device_, none);
  }
  return *made;
}

const ServiceObject& ServiceObjects::find(const std::string& name,
                                          const kernels::ChannelLayout& layout) {
  ServiceObject& made = make(name);
  made.check_lengths(layout);
  return made;
}

void ServiceObjects::leave_behind() noexcept {
  for (auto& [name, object] : made_) {
    [[maybe_unused]] const ServiceObject* const left = object.release();
  }
}

}  // namespace offload::backend
