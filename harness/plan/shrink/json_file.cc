#include "harness/plan/shrink/json_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>
#include <vector>

namespace warmgate::plan::shrink {
namespace {

// No text of a config begins with this, so the words can travel as strings.
constexpr std::string_view kWordMark = "\x01";
constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Python's words become marked strings; everything inside strings stays as it is.
std::string with_marked_words(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (inside) {
      if (c == '\\' && at + 1 < text.size()) out += text[at++];
      if (c == '"') inside = false;
      out += text[at++];
      continue;
    }
    if (c == '"') inside = true;
    bool taken = false;
    for (const std::string_view word : kWords) {
      const std::size_t end = at + word.size();
      if (text.substr(at, word.size()) != word) continue;
      if ((at > 0 && word_char(text[at - 1])) || (end < text.size() && word_char(text[end])))
        continue;
      out += fmt::format("\"\\u0001{}\"", word);
      at = end;
      taken = true;
      break;
    }
    if (!taken) out += text[at++];
  }
  return out;
}

void line_and_column(std::string_view text, std::size_t byte, int& line, int& column) {
  line = column = 1;
  for (std::size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    ++column;
    if (text[i] == '\n') ++line, column = 1;
  }
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …" without the
// parts that are said otherwise.
std::string plain(std::string what) {
  const std::size_t bracket = what.find("] ");
  if (bracket != std::string::npos) what.erase(0, bracket + 2);
  const std::size_t colon = what.find(": ");
  if (what.rfind("parse error", 0) == 0 && colon != std::string::npos) what.erase(0, colon + 2);
  return what;
}

struct Refused {
  std::string key, message;
};

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write(const Json& value, int indent, std::string& out) {
  const std::string pad(static_cast<std::size_t>(indent) + 2, ' ');
  if (value.is_object() && !value.empty()) {
    out += "{\n";
    bool first = true;
    for (const auto& [key, item] : value.items()) {
      if (!first) out += ",\n";
      first = false;
      out += pad + dump(Json(key)) + ": ";
      write(item, indent + 2, out);
    }
    out += "\n" + pad.substr(2) + "}";
  } else if (is_python_word(value)) {
    out += value.get_ref<const std::string&>().substr(kWordMark.size());
  } else if (value.is_array() && !value.empty()) {
    const bool flat = std::none_of(value.begin(), value.end(),
                                   [](const Json& item) { return item.is_structured(); });
    out += flat ? "[" : "[\n";
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += flat ? ", " : ",\n";
      if (!flat) out += pad;
      write(value[i], indent + 2, out);
    }
    out += flat ? "]" : "\n" + pad.substr(2) + "]";
  } else {
    out += dump(value);
  }
}

}  // namespace

std::string read_config_text(const std::filesystem::path& path, Complaints& complaints) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    complaints.add("", fmt::format("cannot be read: {}", std::strerror(errno)));
    return "";
  }
  struct stat status {};
  std::string text;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    complaints.add("", "is no regular file; name a model's config.json");
  } else {
    std::array<char, 65536> buffer;
    ssize_t got = 0;
    while (text.size() <= kMostConfigBytes &&
           ((got = ::read(fd, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR))) {
      if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    if (got < 0) complaints.add("", fmt::format("cannot be read: {}", std::strerror(errno)));
    if (text.size() > kMostConfigBytes)
      complaints.add("",
                     fmt::format("is longer than {} bytes; no config.json is", kMostConfigBytes));
  }
  ::close(fd);
  return complaints.empty() ? text : "";
}

Json parse_config(std::string_view text, Complaints& complaints) {
  if (text.find("\\u0001") != std::string_view::npos) {
    complaints.add("", "has the control character \\u0001 in a text");
    return nullptr;
  }
  std::vector<std::set<std::string>> seen;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= kMostDepth)
        throw Refused{"", fmt::format("is nested deeper than {} levels", kMostDepth)};
      if (event == Event::object_start) seen.emplace_back();
    } else if (event == Event::object_end) {
      seen.pop_back();
    } else if (event == Event::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (!seen.back().insert(key).second)
        throw Refused{key, "comes twice; which of the two is meant?"};
    }
    return true;
  };
  const std::string marked = with_marked_words(text);
  try {
    Json out = Json::parse(marked, watch);
    if (out.is_object()) return out;
    complaints.add("", "is no JSON object");
  } catch (const Refused& refused) {
    complaints.add(refused.key, refused.message);
  } catch (const Json::parse_error& error) {
    int line = 0, column = 0;
    line_and_column(marked, error.byte, line, column);
    complaints.add_at(line, column, "is no JSON: " + plain(error.what()));
  } catch (const Json::exception& error) {
    complaints.add("", "is no JSON: " + plain(error.what()));
  }
  return nullptr;
}

bool is_python_word(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with(kWordMark);
}

std::string config_text(const Json& config) {
  std::string out;
  write(config, 0, out);
  return out + "\n";
}

}  // namespace warmgate::plan::shrink
