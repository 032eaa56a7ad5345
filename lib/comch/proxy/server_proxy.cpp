#include "comch/proxy/server_proxy.hpp"

namespace offload::comch {

ServerProxy::ServerProxy(const protocol::ChannelDescriptor& shape,
                         std::unique_ptr<DataEndpoint> endpoint)
    : ChannelLink(shape),
      slots_(memory_.endpoint(), *this),
      connection_(endpoint->start(engine_, slots_.view(), *this, slots_.depth())) {
  import_channel();
}

void ServerProxy::open(channel::Wakeup wakeup) {
  slots_.set_wakeup(wakeup);
  slots_.open(engine_);
}

bool ServerProxy::on_received(const protocol::DataHeader& header,
                              std::span<const std::byte> content) {
  if (slots_.full()) return false;
  slots_.post({content, header.count});
  return true;
}

void ServerProxy::on_content(const channel::ContentResponse& response) {
  const auto length = static_cast<std::uint32_t>(response.bytes.size());
  // A header that the server's end would refuse is a failure of the request, not of the connection.
  if (response.status != kernels::ResponseStatus::ok ||
      !kernels::is_valid_content(slots_.view().layout, length, response.count)) {
    constexpr auto kFailed = static_cast<std::uint16_t>(kernels::ResponseStatus::bad_length);
    return connection_->post_send({response.sequence, 0, 0, kFailed}, nullptr);
  }
  connection_->post_send({response.sequence, length, static_cast<std::uint16_t>(response.count), 0},
                         response.bytes.data());
}

void ServerProxy::on_sent(std::size_t count) {
  answers_sent_ += count;
  slots_.release_until(answers_sent_);
  slots_.flush();
}

}  // namespace offload::comch
