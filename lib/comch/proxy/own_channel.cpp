#include "comch/proxy/own_channel.hpp"

#include <fcntl.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::comch {

const protocol::ChannelDescriptor& checked_shape(const protocol::ChannelDescriptor& shape) {
  if (kernels::is_valid_shape(shape.depth, shape.max_message_length, shape.max_response_length)) {
    return shape;
  }
  throw core::Error(core::ErrorCode::bad_message,
                    "channel " + std::to_string(shape.channel) + " has an invalid shape");
}

channel::SharedChannel import_own(const channel::ChannelMemory& memory,
                                  const channel::ResponseWriter* writer) {
  const auto own = memory.fds();
  channel::OwnedChannelFds fds;
  std::transform(own.begin(), own.end(), fds.begin(), [](int fd) {
    return core::Fd(core::check_errno(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "duplicate a descriptor"));
  });
  return std::make_shared<channel::ImportedChannel>(memory.descriptor(), std::move(fds), writer);
}

}  // namespace offload::comch
