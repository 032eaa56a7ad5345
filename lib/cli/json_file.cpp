#include "cli/json_file.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace offload::cli {
namespace {

std::string marker_of(const std::string& program) {
  return program.empty() ? "" : fmt::format(R"("program": "{}")", program);
}

}  // namespace

JsonFile::JsonFile(std::string path, const std::string& program)
    : file_(std::move(path), "--output", marker_of(program)) {}

void JsonFile::write(const nlohmann::ordered_json& results) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  file_.write(results.dump(2, ' ', false, kReplace) + "\n");
}

}  // namespace offload::cli
