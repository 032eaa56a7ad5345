#include "comch/transport/transport.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace offload::comch {

const Transport* find_transport(std::string_view scheme) noexcept {
  const auto found = std::ranges::find(transports(), scheme, &Transport::scheme);
  return found != transports().end() ? &*found : nullptr;
}

const Transport& transport_of(std::string_view scheme) {
  if (const Transport* const transport = find_transport(scheme)) return *transport;
  throw core::Error(core::ErrorCode::invalid_value,
                    "no transport has the scheme '" + std::string(scheme) + "'");
}

}  // namespace offload::comch
