#pragma once

#include <cstdint>
#include <string>

#include "memory/access.hpp"
#include "memory/range.hpp"

namespace offload::memory {

/// What a device knows a registered range by.
struct Key {
  std::uint32_t local = 0;   ///< for this process's own work requests
  std::uint32_t remote = 0;  ///< for a peer's
  void* handle = nullptr;    ///< the registrar's own, for deregister
};

/// A device that must be told of memory before it may use it: a network card, a GPU. A region calls
/// it from start and stop, on their thread.
class Registrar {
 public:
  Registrar() = default;
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;
  virtual ~Registrar() = default;

  /// "mlx5_0", "cuda 0": for errors.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Lets the device reach `range` as `access` says; a peer addresses it by Range::address. Throws
  /// Error.
  virtual Key register_range(const Range& range, Access access) = 0;

  /// Ends that. Logs what fails.
  virtual void deregister(const Range& range, const Key& key) noexcept = 0;
};

}  // namespace offload::memory
