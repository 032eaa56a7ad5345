#include "core/process/out_of_memory.hpp"

#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace offload::core {
namespace {

/// The text of describe_errno(ENOMEM), made without memory.
class NoMemory {
 public:
  NoMemory() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    (void)std::snprintf(text_.data(), text_.size(),
                        "Cannot allocate memory (the limit is %ju bytes of address space, "
                        "ulimit -v)",
                        std::uintmax_t{limit.rlim_cur});
  }
  [[nodiscard]] const char* text() const noexcept { return text_.data(); }

 private:
  std::array<char, 128> text_{"Cannot allocate memory"};
};

}  // namespace

const char* what_of(const std::exception& error) noexcept {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  static const NoMemory no_memory;
  return no_memory.text();
}

bool has_memory_for_errors() noexcept {
  constexpr std::size_t kBytes = std::size_t{256} << 10;
  void* volatile probe = std::malloc(kBytes);  // volatile: so that the compiler keeps it
  std::free(probe);
  return probe != nullptr;
}

void print_without_memory(std::string_view program, std::string_view text) noexcept {
  const auto piece = [](std::string_view of) {
    return iovec{const_cast<char*>(of.data()), of.size()};
  };
  const std::array<iovec, 4> pieces{piece(program), piece(": "), piece(text), piece("\n")};
  (void)!::writev(STDERR_FILENO, pieces.data(), pieces.size());
}

}  // namespace offload::core
