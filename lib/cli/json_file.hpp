#pragma once

#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace offload::cli {

/// What a --json option names: opened before the run, so that a wrong path shows at once and not
/// after an hour of load.
class JsonFile {
 public:
  /// Empty: none, and write() does nothing. Throws Error.
  explicit JsonFile(std::string path);

  /// A text may come from strangers: what is no UTF-8 in it is replaced. Throws Error.
  void write(const nlohmann::ordered_json& results);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace offload::cli
