#pragma once

#include <cstdint>
#include <string>

#include "memory/access.hpp"
#include "memory/range.hpp"

namespace offload::memory {

/// The keys of a registered range.
struct MemoryKey {
  std::uint32_t local = 0;   ///< lkey: for this process's work requests
  std::uint32_t remote = 0;  ///< rkey: for a peer's work requests
  void* handle = nullptr;    ///< private to the registrar, for deregister()
};

/// A device that memory must be registered with before the device can access it: a network card, a
/// GPU. A region calls it in start() and stop(), on their thread.
class Registrar {
 public:
  Registrar& operator=(Registrar&&) = delete;
  virtual ~Registrar() = default;

  /// The device's name for error messages: "mlx5_0", "cuda 0".
  [[nodiscard]] virtual std::string name() const = 0;

  /// Registers `range` with the rights `access`; peers address it by Range::address. Throws Error.
  virtual MemoryKey register_range(const Range& range, Access access) = 0;

  /// Ends the registration. Logs a failure.
  virtual void deregister(const Range& range, const MemoryKey& key) noexcept = 0;
};

}  // namespace offload::memory
