#include "harness/cli/result_output.h"

#include "harness/cli/output_file.h"
#include "harness/trace/secrets.h"
#include "reports/text.h"

namespace warmgate::cli {

namespace {

void mask_strings(nlohmann::ordered_json& value, const std::vector<std::string>& secrets) {
  if (value.is_string()) {
    value = trace::mask_secrets(value.get_ref<const std::string&>(), secrets);
  } else if (value.is_structured()) {
    for (auto& item : value) mask_strings(item, secrets);
  }
}

}  // namespace

int deliver_result(nlohmann::ordered_json json, const std::string& text, int code,
                   const CommandLine& line, Console& console) {
  mask_strings(json, console.secrets());
  const auto json_text = [&] {
    return reports::json_shown_safely(
               json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) +
           "\n";
  };
  try {
    if (line.json == "-") {
      console.out(json_text());
    } else {
      if (!line.json.empty()) write_file(line.json, json_text());
      console.out(trace::mask_secrets(text, console.secrets()));
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
