#include "cli/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <utility>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::cli {
namespace {

constexpr std::size_t kMarkerWithin = 4096;

[[noreturn]] void cannot_write(const std::string& path, int error = errno) {
  core::throw_errno("cannot write '" + path + "'", error);
}

void write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) cannot_write(path);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// Returns whether renaming would replace a device or a pipe by a file.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/// Returns the permissions of the file that will be replaced, or those of a new one.
mode_t permissions_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return status.st_mode & 07777U;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666U & ~mask;
}

/// Returns the target of a symbolic link, which may not exist: renaming would replace the link.
std::string behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as the kernel, path_resolution(7)
  for (int i = 0; std::filesystem::is_symlink(path); ++i) {
    if (i == kMostLinks) cannot_write(path.string(), ELOOP);
    path = path.parent_path() / std::filesystem::read_symlink(path);
  }
  return path.string();
}

/// JSON may be laid out in any way.
std::string without_blanks(std::string_view text) {
  std::string rest(text);
  rest.erase(std::remove_if(rest.begin(), rest.end(),
                            [](unsigned char each) { return std::isspace(each) != 0; }),
             rest.end());
  return rest;
}

void require_own(const std::string& path, const std::string& option, std::string_view marker) {
  const core::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    if (errno == ENOENT) return;
    cannot_write(path);
  }
  std::array<char, kMarkerWithin> front{};
  const ssize_t count = ::read(file.get(), front.data(), front.size());
  if (count < 0) cannot_write(path);
  const std::string text = without_blanks({front.data(), static_cast<std::size_t>(count)});
  if (count == 0 || text.find(without_blanks(marker)) != std::string::npos) return;
  throw core::Error(core::ErrorCode::already_exists,
                    option + ": '" + path +
                        "' does not contain results of this program: " + "it is not overwritten");
}

}  // namespace

/// Writes in place what renaming would replace by a file, and everything else into a file beside
/// it, which is removed unless it takes that place.
class OutputFile::Writer {
 public:
  explicit Writer(const std::string& path) : path_(path) {
    if (path == "-") {
      fd_ = STDOUT_FILENO;
      return;
    }
    if (!is_special(path)) temporary_ = path + ".XXXXXX";
    file_ = core::Fd(temporary_.empty() ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC)
                                        : ::mkostemp(temporary_.data(), O_CLOEXEC));
    fd_ = file_.get();
    if (!file_.valid()) cannot_write(path);
  }
  Writer& operator=(Writer&&) = delete;
  ~Writer() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  void write(std::string_view text) const {
    write_all(fd_, text, path_ == "-" ? "standard output" : path_);
  }
  void commit() {
    if (temporary_.empty()) return;
    if (::fchmod(fd_, permissions_of(path_)) != 0 || ::fsync(fd_) != 0 ||
        ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      cannot_write(path_);
    }
    temporary_.clear();
  }

 private:
  std::string path_;
  std::string temporary_;  ///< empty: written in place
  core::Fd file_;
  int fd_ = -1;
};

OutputFile::OutputFile(std::string path, const std::string& option, std::string_view marker)
    : path_(std::move(path)) {
  if (!wanted() || is_standard_output()) return;
  path_ = behind_links(path_);
  if (is_special(path_)) {
    if (::access(path_.c_str(), W_OK) != 0) cannot_write(path_);
    return;
  }
  if (std::filesystem::is_directory(path_)) cannot_write(path_, EISDIR);
  const auto folder = std::filesystem::path(path_).parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) cannot_write(path_);
  if (!marker.empty()) require_own(path_, option, marker);
}

OutputFile::~OutputFile() = default;

void OutputFile::append(std::string_view text) {
  if (!wanted()) return;
  if (!writer_) writer_ = std::make_unique<Writer>(path_);
  writer_->write(text);
}

void OutputFile::commit() {
  if (!wanted()) return;
  append("");  // an empty file, if nothing was appended
  writer_->commit();
  writer_.reset();
}

}  // namespace offload::cli
