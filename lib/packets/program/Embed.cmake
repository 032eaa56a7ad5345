# Run when the program is compiled: cmake -DOBJECT=... -DOUTPUT=... -P Embed.cmake
# Makes a source of an object file. Not .incbin: a compiler cache would not see that the file has changed.
file(READ ${OBJECT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n"
  bytes "${bytes}")
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#include <cstddef>
#include <span>

namespace offload::packets {
namespace {

/// Aligned as libbpf reads an ELF object.
alignas(16) constexpr unsigned char kObject[] = {
${bytes}};

}  // namespace

std::span<const std::byte> steer_object() noexcept;
std::span<const std::byte> steer_object() noexcept {
  return std::as_bytes(std::span(kObject));
}

}  // namespace offload::packets
")
