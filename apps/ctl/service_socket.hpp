#pragma once

#include <string>
#include <vector>

/// The sockets of --admin that the units of systemd give to servers and workers
/// (deploy/systemd): RUN/dpu-gpu-offload-INSTANCE/server.admin, and
/// RUN/offload-worker-INSTANCE/worker.admin. RUN is /run, except in tests.
namespace offload::ctl {

enum class ServiceKind { server, worker };

/// Returns the path of the socket of an instance.
std::string service_socket(const std::string& run, ServiceKind kind, const std::string& instance);

/// Returns the names of the instances that have a socket, in order. One whose folder this user may
/// not read counts: the command then fails with the reason.
std::vector<std::string> instances_in(const std::string& run, ServiceKind kind);

}  // namespace offload::ctl
