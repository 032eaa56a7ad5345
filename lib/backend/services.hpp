#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/module/service_interface.hpp"

namespace offload::backend {

/// A shared library with a service (docs/reference/services.md). It stays loaded until the process
/// ends, because drivers and threads may still execute its code.
class ServiceModule {
 public:
  /// Loads `path`. Throws Error: not_found, unsupported_version, invalid_value.
  explicit ServiceModule(const std::string& path) : ServiceModule(path, path) {}
  /// Loads `file`, which was made from the file at `path`. Throws Error: not_found,
  /// unsupported_version, invalid_value.
  ServiceModule(std::string path, const std::string& file);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const kernels::ServiceInterface& interface() const noexcept { return *interface_; }

 private:
  std::string path_;
  const kernels::ServiceInterface* interface_;
};

/// Pairs of KEY or SERVICE.KEY and the value.
using ServiceOptions = std::vector<std::pair<std::string, std::string>>;

/// Adds `text`, KEY=VALUE or SERVICE.KEY=VALUE. Returns false if it has another form.
bool add_service_option(ServiceOptions& options, const std::string& text);

/// The services of a worker: built-in ones and those of modules. Must not change while several back
/// ends make objects from it.
class Services {
 public:
  /// Loads the modules. Throws Error: already_exists, and as ServiceModule does.
  explicit Services(const std::vector<std::string>& modules = {}, ServiceOptions options = {});

  /// Loads another module: `file`, which was made from the file at `path`. Throws as the
  /// constructor does.
  void add(const std::string& path, const std::string& file);

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] const std::vector<ServiceModule>& modules() const noexcept { return modules_; }
  [[nodiscard]] const ServiceOptions& options() const noexcept { return options_; }
  /// Returns a service by its name. Throws Error: not_found.
  [[nodiscard]] const kernels::ServiceInterface& find(const std::string& name) const;

 private:
  std::vector<ServiceModule> modules_;
  ServiceOptions options_;
};

/// The object of a service for one back end, with memory on the device of that back end.
class ServiceObject {
 public:
  /// `device`: kernels::kOnCpu, or the number of the GPU for CUDA. Throws Error.
  ServiceObject(const kernels::ServiceInterface& interface, std::int32_t device,
                std::vector<kernels::ServiceOption>& options);

  [[nodiscard]] const kernels::ServiceInterface& interface() const noexcept { return *interface_; }
  [[nodiscard]] const void* get() const noexcept { return object_.get(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Checks that a channel of this layout has room for each response. Throws Error: invalid_value.
  void check_lengths(const kernels::ChannelLayout& layout);

 private:
  const kernels::ServiceInterface* interface_;
  std::uint64_t bytes_ = 0;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> checked_;  ///< request, response
  std::unique_ptr<void, void (*)(void*)> object_;
};

/// The objects of one back end. Those of modules are made immediately, so that errors in them or
/// their options are found before a server sends requests; those of built-in services when needed.
class ServiceObjects {
 public:
  /// Throws Error.
  ServiceObjects(Services services, std::int32_t device);

  /// Returns the object called `name`. Throws Error: not_found.
  const ServiceObject& find(const std::string& name) { return make(name); }
  /// Returns the object for a channel of this layout. Throws Error: not_found, and as
  /// ServiceObject::check_lengths() does.
  const ServiceObject& find(const std::string& name, const kernels::ChannelLayout& layout);
  /// For GPUs that cannot be freed: keeps the objects until the process ends.
  void leave_behind() noexcept;

 private:
  ServiceObject& make(const std::string& name);

  Services services_;
  std::int32_t device_;
  std::map<std::string, std::unique_ptr<ServiceObject>> made_;
};

}  // namespace offload::backend
