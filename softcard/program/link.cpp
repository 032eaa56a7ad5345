#include "softcard/program/link.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.hpp"

namespace offload::softcard {

Mapping::Mapping(int device, std::uint64_t offset, std::size_t length, bool writable)
    : length_(length) {
  void* const at = ::mmap(nullptr, length, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED,
                          device, static_cast<off_t>(offset));
  if (at == MAP_FAILED) core::throw_errno("map memory of an owner");
  data_ = static_cast<std::byte*>(at);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), length_(std::exchange(other.length_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(length_, other.length_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, length_);
}

Link::Link(std::uint32_t flags)
    : fd_(core::check_errno(::open(SOFTCARD_PATH, O_RDWR | O_NONBLOCK | O_CLOEXEC),
                            "open " SOFTCARD_PATH)) {
  page_ = Mapping(fd_.get(), 0, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), false);
  softcard_message message{};
  message.kind = SOFTCARD_CONFIGURE;
  message.value = static_cast<std::int32_t>(flags);
  message.version = SOFTCARD_VERSION;
  write(message);
}

bool Link::has_request() const noexcept {
  const auto* const page = reinterpret_cast<const softcard_page*>(page_.data());
  return __atomic_load_n(&page->requests, __ATOMIC_RELAXED) != seen_;
}

std::optional<softcard_request> Link::read() {
  softcard_request request{};
  const auto size = ::read(fd_.get(), &request, sizeof request);
  if (size < 0 && errno == EAGAIN) return std::nullopt;
  core::check_errno(size, "read a request of the module");
  ++seen_;
  return request;
}

void Link::write(const softcard_message& message) {
  core::check_errno(::write(fd_.get(), &message, sizeof message), "write to the module");
}

void Link::answer(const softcard_request& request, int error) {
  softcard_message message{};
  message.kind = SOFTCARD_ANSWER;
  message.id = request.id;
  message.value = error;
  write(message);
}

void Link::tell(softcard_message_kind kind, std::uint32_t number, std::int32_t value) {
  softcard_message message{};
  message.kind = kind;
  message.number = number;
  message.value = value;
  write(message);
}

void Link::deliver(const softcard_mad& message) {
  struct {
    softcard_message head;
    softcard_mad mad;
  } whole{};
  whole.head.kind = SOFTCARD_MAD;
  whole.mad = message;
  core::check_errno(::write(fd_.get(), &whole, sizeof whole), "write to the module");
}

Area Link::map(const softcard_area& area, bool writable) const {
  Area mapped;
  mapped.mapping = Mapping(fd_.get(), area.map_offset, area.map_length, writable);
  mapped.bytes = {mapped.mapping.data() + area.begin, area.length};
  return mapped;
}

}  // namespace offload::softcard
