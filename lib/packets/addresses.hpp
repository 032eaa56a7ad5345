#pragma once

#include <string>
#include <vector>

#include "core/fd.hpp"
#include "kernels/packets/martian.hpp"

namespace offload::packets {

/// The addresses of an interface and of its host.
struct PortAddresses {
  kernels::packets::HostAddresses host{};  ///< what device functions compare with
  std::vector<std::string> own;            ///< the interface's own, IPv4 first; for rules
};

/// Reads the addresses that an interface and its host have now. If they do not fit in
/// HostAddresses, those of the interface come first, and the log says so. Throws Error.
PortAddresses read_addresses(const std::string& interface);

/// Tells that addresses of this host may have changed, or something else of its interfaces
/// (rtnetlink(7)). One thread.
class AddressChanges {
 public:
  /// Throws Error.
  AddressChanges();
  /// Returns whether they changed since the last call, or since the constructor. Does not block.
  bool take() noexcept;

 private:
  core::Fd socket_;
};

}  // namespace offload::packets
