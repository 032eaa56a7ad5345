#include "core/error.hpp"
#include "doca/eth/port.hpp"

namespace offload::doca {

bool EthPort::is_supported() noexcept {
  return false;
}

std::shared_ptr<EthPort> EthPort::open(const std::string&) {
  throw core::Error(core::ErrorCode::not_supported,
                    "this library is built without the extension packets");
}

}  // namespace offload::doca
