#include "apps/client/requests/payload.hpp"

#include <fstream>
#include <iterator>
#include <span>

#include "apps/client/requests/size_mix.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace offload::client {

constexpr std::string_view kConstant = "constant:";
constexpr std::string_view kFile = "file:";

std::optional<Payload> Payload::parse(const std::string& text) {
  Payload payload;
  if (text == "random") return payload;
  if (text.rfind(kFile, 0) == 0 && text.size() > kFile.size()) {
    payload.kind = Kind::file;
    payload.path = text.substr(kFile.size());
    return payload;
  }
  if (text.rfind(kConstant, 0) != 0) return std::nullopt;
  const auto value = core::parse_number<std::uint8_t>(text.substr(kConstant.size()));
  if (!value) return std::nullopt;
  payload.kind = Kind::constant;
  payload.value = static_cast<std::byte>(*value);
  return payload;
}

void Payload::load() {
  if (kind != Kind::file) return;
  std::ifstream file(path, std::ios::binary);
  if (!file) core::throw_errno("cannot read '" + path + "'");
  std::vector<char> bytes(kLongestMessage + 1);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) core::throw_errno("cannot read '" + path + "'");
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.empty() || bytes.size() > kLongestMessage) {
    throw core::Error(core::ErrorCode::invalid_value, "'" + path + "' must have 1 byte to 16 MiB");
  }
  const auto read = std::as_bytes(std::span(bytes));
  content.assign(read.begin(), read.end());
}

}  // namespace offload::client
