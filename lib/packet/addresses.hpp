#pragma once

#include <string>
#include <vector>

#include "core/fd.hpp"
#include "kernels/packet/martian.hpp"

namespace offload::packet {

/// Who answers on an interface.
struct PortAddresses {
  kernels::packet::HostAddresses host{};  ///< what device functions compare with
  std::vector<std::string> own;           ///< the interface's own, IPv4 first; for rules
};

/// Reads the addresses that an interface and its host have now. Of more than HostAddresses has room
/// for, the interface's own come first, and the log says so. Throws Error.
PortAddresses read_addresses(const std::string& interface);

/// Tells that addresses of this host may have changed, or something else of its interfaces
/// (rtnetlink(7)). One thread.
class AddressChanges {
 public:
  /// Throws Error.
  AddressChanges();
  /// Whether that was so since the last call, or since the constructor. Does not block.
  bool take() noexcept;

 private:
  core::Fd socket_;
};

}  // namespace offload::packet
