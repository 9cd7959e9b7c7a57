#include "harness/cli/result_output.h"

#include "harness/cli/output_file.h"

namespace warmgate::cli {

int deliver_result(const nlohmann::ordered_json& json, const std::string& text, int code,
                   const CommandLine& line, Console& console) {
  const auto json_text = [&] {
    return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  };
  try {
    if (line.json == "-") {
      console.out(json_text());
    } else {
      if (!line.json.empty()) write_file(line.json, json_text());
      console.out(text);
    }
  } catch (const std::exception& e) {
    console.complain(e.what());
    return 4;
  }
  if (console.out_error().empty()) return code;
  console.complain(console.out_error());
  return 4;
}

}  // namespace warmgate::cli
