#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/module/service_interface.hpp"

namespace offload::backend {

/// A shared library with a service (docs/reference/services.md). Stays loaded to the end of the
/// process: it has code that drivers and threads may still be in.
class ServiceModule {
 public:
  /// Loads `path`. Throws Error: not_found, unsupported_version, invalid_value.
  explicit ServiceModule(const std::string& path) : ServiceModule(path, path) {}
  /// The same of `file`, which was made of what is at `path`.
  ServiceModule(std::string path, const std::string& file);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const kernels::ServiceInterface& interface() const noexcept { return *interface_; }

 private:
  std::string path_;
  const kernels::ServiceInterface* interface_;
};

/// KEY or SERVICE.KEY, and the value.
using ServiceOptions = std::vector<std::pair<std::string, std::string>>;

/// Adds `text`, KEY=VALUE or SERVICE.KEY=VALUE. False: it is none.
bool add_service_option(ServiceOptions& options, const std::string& text);

/// The services that a worker has: those that are built in, and those of modules. Read only while
/// several back ends make objects of it.
class Services {
 public:
  /// Loads the modules. Throws Error: what ServiceModule throws; already_exists.
  explicit Services(const std::vector<std::string>& modules = {}, ServiceOptions options = {});

  /// Loads one more: `file`, which was made of what is at `path`. Throws as the constructor.
  void add(const std::string& path, const std::string& file);

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

  /// Sees that a channel of this layout has room for each response. Throws Error: invalid_value.
  void check_lengths(const kernels::ChannelLayout& layout);

 private:
  const kernels::ServiceInterface* interface_;
  std::uint64_t bytes_ = 0;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> checked_;  ///< request, response
  std::unique_ptr<void, void (*)(void*)> object_;
};

/// The objects of one back end. Those of modules are made at once, so that what is wrong with them
/// or their options shows before a server sends requests; of those that are built in, as needed.
class ServiceObjects {
 public:
  /// Throws Error.
  ServiceObjects(Services services, std::int32_t device);

  /// The one called `name`. Throws Error: not_found.
  const ServiceObject& find(const std::string& name) { return make(name); }
  /// The same for a channel of this layout. Throws Error: not_found, and what
  /// ServiceObject::check_lengths() throws.
  const ServiceObject& find(const std::string& name, const kernels::ChannelLayout& layout);
  /// Of GPUs that cannot be freed: leaves the objects to the end of the process.
  void leave_behind() noexcept;

 private:
  ServiceObject& make(const std::string& name);

  Services services_;
  std::int32_t device_;
  std::map<std::string, std::unique_ptr<ServiceObject>> made_;
};

}  // namespace offload::backend
