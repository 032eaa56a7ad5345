#include "comch/transport/local/path_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"

namespace offload::comch {

using core::check_errno;

PathLock::PathLock(const Address& address) : path_(address.path + ".lock") {
  const std::string action = "cannot lock " + address.to_string() + " with " + path_;
  while (true) {
    core::Fd fd(check_errno(::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600),
                            action));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) core::throw_errno(action);
      throw core::Error(core::ErrorCode::in_use,
                        address.to_string() + ": another server listens there");
    }
    // Its former holder may have removed the file between the two calls: then it locks nothing.
    struct stat locked {};
    struct stat there {};
    check_errno(::fstat(fd.get(), &locked), action);
    if (::stat(path_.c_str(), &there) == 0 && there.st_ino == locked.st_ino) {
      fd_ = std::move(fd);
      return;
    }
  }
}

PathLock::~PathLock() {
  ::unlink(path_.c_str());  // still locked
}

}  // namespace offload::comch
