#include "cli/json_file.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"

namespace offload::cli {

JsonFile::JsonFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  file_.open(path_);
  if (!file_) core::throw_errno("cannot write '" + path_ + "'");
}

void JsonFile::write(const nlohmann::ordered_json& results) {
  if (path_.empty()) return;
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  file_ << results.dump(2, ' ', false, kReplace) << std::endl;
  if (!file_) core::throw_errno("cannot write '" + path_ + "'");
}

}  // namespace offload::cli
