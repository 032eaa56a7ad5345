#include "core/fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/error.hpp"

namespace offload::core {

Fd open_regular_file(const std::string& path, const std::string& action) {
  // Without O_NONBLOCK, open() of a FIFO waits for a writer.
  Fd file(check_errno(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), action));
  struct stat status {};
  check_errno(::fstat(file.get(), &status), action);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::invalid_value, action + ": it is not a regular file");
  }
  return file;
}

}  // namespace offload::core
