#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/module/service_interface.hpp"

namespace offload::backend {

/// Whether a service may be called so: 1 to kernels::kMaxServiceName of a-z, 0-9, - and _.
bool is_service_name(std::string_view name) noexcept;

/// A shared library with a service (docs/services.md). Stays loaded to the end of the process: it
/// has code that drivers and threads may still be in.
class ServiceModule {
 public:
  /// Loads `path`. Throws Error: not_found, unsupported_version, invalid_value.
  explicit ServiceModule(std::string path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const kernels::ServiceInterface& interface() const noexcept { return *interface_; }

 private:
  std::string path_;
  const kernels::ServiceInterface* interface_;
};

/// KEY or SERVICE.KEY, and the value.
using ServiceOptions = std::vector<std::pair<std::string, std::string>>;

/// The services that a worker has: those that are built in, and those of modules. Read only while
/// several back ends make objects of it.
class Services {
 public:
  /// Loads the modules. Throws Error: what ServiceModule throws; already_exists.
  explicit Services(const std::vector<std::string>& modules = {}, ServiceOptions options = {});

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const std::vector<ServiceModule>& modules() const noexcept { return modules_; }
  [[nodiscard]] const ServiceOptions& options() const noexcept { return options_; }
  /// Throws Error: not_found.
  [[nodiscard]] const kernels::ServiceInterface& find(const std::string& name) const;

 private:
  std::vector<ServiceModule> modules_;
  ServiceOptions options_;
};

/// A service as one back end serves it, with its memory where that serves.
class ServiceObject {
 public:
  /// `device`: kernels::kOnCpu, or the GPU's number for CUDA. Throws Error.
  ServiceObject(const kernels::ServiceInterface& interface, std::int32_t device,
                std::vector<kernels::ServiceOption>& options);

  [[nodiscard]] const kernels::ServiceInterface& interface() const noexcept { return *interface_; }
  [[nodiscard]] const void* get() const noexcept { return object_.get(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Whether no answer to a request of up to `max_length` is longer than the request and
  /// `max_response`, which a channel has room for. Throws Error: invalid_value.
  void check_lengths(std::uint32_t max_length, std::uint32_t max_response) const;

 private:
  const kernels::ServiceInterface* interface_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<void, void (*)(void*)> object_;
};

/// The objects of one back end. Those of modules are made at once, so that what is wrong with them
/// or their options shows before a server sends requests; of those that are built in, as needed.
class ServiceObjects {
 public:
  /// Throws Error.
  ServiceObjects(Services services, std::int32_t device);

  /// Throws Error: not_found.
  const ServiceObject& find(const std::string& name);
  [[nodiscard]] std::vector<std::string> names() const { return services_.names(); }
  /// Of GPUs that cannot be freed: leaves the objects to the end of the process.
  void leave_behind() noexcept;

 private:
  Services services_;
  std::int32_t device_;
  std::map<std::string, std::unique_ptr<ServiceObject>> made_;
};

}  // namespace offload::backend
