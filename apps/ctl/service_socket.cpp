#include "apps/ctl/service_socket.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace offload::ctl {
namespace {

std::string_view prefix_of(ServiceKind kind) {
  return kind == ServiceKind::server ? "dpu-gpu-offload-" : "offload-worker-";
}

}  // namespace

std::string service_socket(const std::string& run, ServiceKind kind, const std::string& instance) {
  return fmt::format("{}/{}{}/{}.admin", run, prefix_of(kind), instance,
                     kind == ServiceKind::server ? "server" : "worker");
}

std::vector<std::string> instances_in(const std::string& run, ServiceKind kind) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(run, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string folder = at->path().filename().string();
    if (!folder.starts_with(prefix_of(kind))) continue;
    const std::string name = folder.substr(prefix_of(kind).size());
    std::error_code why;
    const auto status = fs::status(service_socket(run, kind, name), why);
    if (status.type() == fs::file_type::socket || why == std::errc::permission_denied)
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace offload::ctl
