#include "comch/transport/data_connection.hpp"

namespace offload::comch {

using protocol::DataHeader;

void DataConnection::fail(const std::string& reason) {
  if (failed()) return;
  reason_ = reason;
  failed_.store(true, std::memory_order_release);  // pairs with failed()
}

bool DataConnection::check(const DataHeader& header) {
  if (header.length > max_length_) {
    fail("the peer sent a message of " + std::to_string(header.length) + " bytes, over the " +
         std::to_string(max_length_) + " of the channel");
  } else if (header.sequence != received_ || !peer_has_credit()) {
    fail("the peer sent a message that is not due");
  }
  return !failed();
}

void DataConnection::deliver(const DataHeader& header, std::span<const std::byte> payload) {
  ++received_;
  if (!handler_->on_received(header, payload)) fail("a message of the peer cannot be taken");
}

}  // namespace offload::comch
