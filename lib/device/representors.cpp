#include "device/representors.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <tuple>

#include "device/sysfs.hpp"

namespace offload::device {
namespace {

namespace fs = std::filesystem;

/// Takes `prefix` and the number behind it off the front; nothing is taken if either is missing.
std::optional<std::uint32_t> take_number(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + prefix.size(), end, number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

std::optional<Representor> representor_at(const fs::path& interface) {
  Representor found;
  found.interface = interface.filename().string();
  found.port_name = attribute(interface / "phys_port_name");
  found.switch_id = attribute(interface / "phys_switch_id");
  const auto function = function_of(found.port_name);
  if (!function || found.switch_id.empty()) return std::nullopt;
  found.function = *function;
  found.pci_address = card_address(interface / "device");
  const std::string dev_port = attribute(interface / "dev_port");
  std::from_chars(dev_port.data(), dev_port.data() + dev_port.size(), found.dev_port);
  return found;
}

}  // namespace

std::string Representor::describe() const {
  std::string text = interface + ", for ";
  if (function.kind != FunctionKind::physical) {
    text += std::string(name_of(function.kind)) + " ";
    text += std::to_string(function.number) + " of ";
  }
  text +=
      "PF " + std::to_string(function.pf) + " of controller " + std::to_string(function.controller);
  if (!pci_address.empty()) text += ", by " + pci_address;
  return text;
}

std::optional<Function> function_of(std::string_view port_name) noexcept {
  Function function;
  function.controller = take_number(port_name, "c").value_or(0);
  const auto pf = take_number(port_name, "pf");
  if (!pf) return std::nullopt;
  function.pf = *pf;
  if (const auto vf = take_number(port_name, "vf")) {
    function.kind = FunctionKind::virtual_;
    function.number = *vf;
  } else if (const auto sf = take_number(port_name, "sf")) {
    function.kind = FunctionKind::subfunction;
    function.number = *sf;
  } else if (port_name == "hpf") {
    port_name = {};  // the host's PF, where a driver has no controllers
  }
  if (!port_name.empty()) return std::nullopt;
  return function;
}

std::vector<Representor> list_representors(const fs::path& interfaces) {
  std::vector<Representor> found;
  std::error_code error;
  for (fs::directory_iterator at(interfaces, error), end; !error && at != end;
       at.increment(error)) {
    if (auto representor = representor_at(at->path())) found.push_back(std::move(*representor));
  }
  std::ranges::sort(found, [](const Representor& one, const Representor& other) {
    return std::tie(one.pci_address, one.switch_id, one.function, one.interface) <
           std::tie(other.pci_address, other.switch_id, other.function, other.interface);
  });
  return found;
}

}  // namespace offload::device
