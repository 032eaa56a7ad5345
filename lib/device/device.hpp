#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The devices of this machine that have memory or reach memory, and what each of them can do.
namespace offload::device {

enum class Kind : std::uint8_t {
  host,  ///< processors and memory of this machine
  gpu,
  rdma,  ///< a network card that libibverbs finds, or its emulation
};

/// The kind of function of a card.
enum class FunctionKind : std::uint8_t {
  physical,     ///< PF
  virtual_,     ///< VF, of SR-IOV
  subfunction,  ///< SF
};

/// "PF", "VF", "SF"
std::string_view name_of(FunctionKind kind) noexcept;

/// A device of this machine, as it was found.
struct Device {
  Kind kind = Kind::host;
  std::uint32_t index = 0;   ///< among its kind
  std::string name;          ///< "host", "NVIDIA H100 80GB HBM3", "mlx5_0"
  std::string pci_address;   ///< "0000:01:00.0"; the host and what is emulated have none
  int numa_node = -1;        ///< the nearest; -1: unknown or none
  std::uint64_t memory = 0;  ///< bytes; 0 where it has none to offer
  std::optional<FunctionKind> function = std::nullopt;  ///< of a card on a bus

  /// "gpu:0 NVIDIA H100 80GB HBM3 at 0000:01:00.0"
  [[nodiscard]] std::string describe() const;
};

/// "host", "gpu", "rdma"
std::string_view name_of(Kind kind) noexcept;

enum class Capability : std::uint8_t {
  shared_memory,        ///< memory that another process maps (sealed memfd)
  numa_binding,         ///< memory on a chosen NUMA node
  huge_pages,           ///< memory in huge pages that were set aside
  persistent_worker,    ///< runs the worker's kernel
  mapped_host_memory,   ///< reads and writes the host's memory by itself
  native_host_atomics,  ///< its atomics on host memory and the host's see each other
  peer_memory,          ///< another PCIe device can reach its memory by peer-memory drivers
  dma_buf,              ///< another PCIe device can reach its memory by dma-buf
  export_to_process,    ///< a region of its memory can be given to another process
  export_to_peer,       ///< a region can be registered with it, and a peer reaches it by network
  copies,               ///< it makes copies (lib/tasks/copy, gpu::CudaCopyContext)
};
inline constexpr std::size_t kCapabilities = 11;

/// "shared_memory", "dma_buf", ...
std::string_view name_of(Capability capability) noexcept;

/// The support of a capability: whether it is there, and if not, why.
struct Support {
  bool supported = false;
  std::string reason;  ///< why not; empty if it is

  explicit operator bool() const noexcept { return supported; }
};

/// Returns whether `device` has `capability` on this machine and in this build.
Support supports(const Device& device, Capability capability);
/// The same of a GPU. As list_gpus(), one with CUDA (cuda_gpus.cpp) and one without (no_gpus.cpp).
Support gpu_supports(const Device& gpu, Capability capability);

/// The host first, then the GPUs, then the RDMA devices.
std::vector<Device> list_devices();

/// The devices of one kind.
struct DeviceList {
  std::vector<Device> devices;
  std::string why_none;  ///< empty if there are some
};
/// The GPUs that CUDA finds: none in a build without CUDA, or on a machine without a driver.
DeviceList list_gpus();
/// The RDMA devices that libibverbs finds.
DeviceList list_rdma_devices();

/// Returns whether `text` is "[domain:]bus:device[.function]", in hexadecimal.
bool is_pci_address(std::string_view text);
/// Returns a PCI address with its domain and function, in lower case: "0000:03:00.0" for "03:00";
/// nothing for other text.
std::optional<std::string> full_pci_address(std::string_view text);

/// Returns the device of `devices` that `selector` names: "host", "gpu" or "rdma" (the first),
/// "gpu:INDEX", "rdma:INDEX", a PCI address with or without its domain and function, or a name.
/// Throws Error: not_found, with the list; invalid_value for a name of several devices.
const Device& find(const std::vector<Device>& devices, std::string_view selector);

}  // namespace offload::device
