#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output_file.hpp"

namespace offload::cli {

/// The file of an --output option: an OutputFile for results as JSON.
class JsonFile {
 public:
  /// Throws as OutputFile. `program`: only its results, which begin with "program": its name, may
  /// be overwritten; empty: any file.
  explicit JsonFile(std::string path, const std::string& program = {});

  [[nodiscard]] bool is_standard_output() const noexcept { return file_.is_standard_output(); }

  /// A text may come from strangers: what is no UTF-8 in it is replaced. Throws Error.
  void write(const nlohmann::ordered_json& results);

 private:
  OutputFile file_;
};

}  // namespace offload::cli
