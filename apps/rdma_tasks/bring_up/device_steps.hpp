#pragma once

#include <cstdint>
#include <string>

#include "apps/rdma_tasks/bring_up/finding.hpp"
#include "apps/rdma_tasks/environment.hpp"
#include "apps/rdma_tasks/options.hpp"

/// The steps of the bring-up that transfer nothing. None of them throws Error: a failure is a
/// finding.
namespace offload::rdma_tool {

/// Describes an open device: name, driver, firmware, ports and atomic operations.
StepFinding describe_device(const rdma::DeviceContext& device);
/// Returns the finding for a device that cannot be opened.
StepFinding explain_device(const core::Error& error);

/// Returns the first active port of the device; 1 if none is active.
std::uint8_t choose_port(const rdma::DeviceContext& device);
/// Checks a port: state, link layer, MTU, and the GID or LID of `options`.
StepFinding check_port(const rdma::DeviceContext& device, std::uint8_t port,
                       const Options& options);
/// Checks how server and worker choose this port for an address of `--comch rdma:`.
StepFinding check_path(const rdma::DeviceContext& device, std::uint8_t port,
                       const Options& options);

/// Registers memory of the host, as much as some channels have.
StepFinding check_memory(Environment& environment);
/// Registers memory of the GPU, in the way that the device can.
StepFinding check_gpu_memory(Environment& environment);

}  // namespace offload::rdma_tool
