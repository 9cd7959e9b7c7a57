// From the words of --changed to paths.
#include <algorithm>
#include <fstream>
#include <istream>
#include <iterator>
#include <optional>

#include "harness/cli/changed.h"
#include "harness/cli/repository.h"
#include "harness/scenario/problems.h"
#include "harness/scenario/text_file.h"

namespace warmgate::cli {
namespace {

namespace fs = std::filesystem;
using scenario::shown;

// The paths of a commit that touches everything in a large repository are a few megabytes.
constexpr std::size_t kMostBytes = 256 << 20;

class Reader {
 public:
  explicit Reader(const fs::path& folder) {
    std::error_code error;
    changed_.root = repository_of(folder);
    if (changed_.root.empty()) changed_.root = fs::weakly_canonical(folder, error);
  }

  void word(const std::string& word, std::istream& in) {
    if (word == "-") {
      text(read(in, "stdin"), "stdin");
    } else if (!word.empty() && word.front() == '@') {
      const std::string file = word.substr(1);
      std::ifstream stream;
      if (scenario::ends_somewhere(file)) stream.open(file, std::ios::binary);
      if (!stream.is_open())
        return wrong(file.empty() ? "@" : file,
                     "cannot be read, or is no regular file; it should hold a path a line");
      text(read(stream, file), file);
    } else {
      text(word, "");
    }
  }

  ChangedFiles take() {
    if (changed_.files.empty() && problems_.empty())
      wrong("--changed", "the list is empty; if nothing changed there is nothing to select for");
    if (!problems_.empty()) throw scenario::ScenarioError(std::move(problems_));
    return std::move(changed_);
  }

 private:
  void wrong(const std::string& where, std::string message, int line = 0) {
    if (problems_.size() < 20)
      problems_.push_back({where, line, line > 0 ? 1 : 0, "", std::move(message)});
  }

  std::string read(std::istream& in, const std::string& name) {
    std::string out;
    char buffer[65536];
    while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
      out.append(buffer, static_cast<std::size_t>(in.gcount()));
      if (out.size() <= kMostBytes) continue;
      wrong(name, "more than 256 MiB; this is no list of paths");
      return "";
    }
    if (in.bad()) wrong(name, "could not be read to its end");
    return out;
  }

  // `source`: where it came from; "" = the command line.
  void text(std::string text, const std::string& source) {
    if (text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);  // some editors begin a file so
    const char separator = text.find('\0') != std::string::npos ? '\0' : '\n';
    int number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(separator, at), text.size());
      std::string path = text.substr(at, end - at);
      at = end + 1;
      ++number;
      if (separator == '\n' && !path.empty() && path.back() == '\r') path.pop_back();
      const auto refuse = [&](const std::string& why) {
        wrong(source.empty() ? "--changed" : source, shown(path) + ": " + why,
              source.empty() ? 0 : number);
      };
      if (path.empty()) continue;
      // git writes a tab within a name as \t, so one that is bare parts two fields.
      if (separator != '\n' || path.find('\t') == std::string::npos) {
        add(path, separator == '\n', refuse);
        continue;
      }
      if (!is_status(path.substr(0, path.find('\t')))) {
        refuse("holds a tab; give what `git diff --name-only` or --name-status prints");
        continue;
      }
      // A renamed file changed under both of its names.
      for (std::size_t field = path.find('\t'); field != std::string::npos;) {
        const std::size_t next = path.find('\t', field + 1);
        add(path.substr(field + 1, next == std::string::npos ? next : next - field - 1), true,
            refuse);
        field = next;
      }
    }
  }

  // The first field of `git diff --name-status`: a letter, with a score where a file moved.
  static bool is_status(const std::string& field) {
    return !field.empty() && field.size() <= 4 &&
           std::string_view("ACDMRTUXB").find(field[0]) != std::string_view::npos &&
           field.find_first_not_of("0123456789", 1) == std::string::npos;
  }

  template <typename Refuse>
  void add(std::string path, bool quoted, const Refuse& refuse) {
    if (path.empty()) return refuse("an empty name");
    if (quoted && path.front() == '"') {
      const std::optional<std::string> plain = unquoted(path);
      if (!plain)
        return refuse("a name that begins with a quotation mark must be quoted as git does");
      path = *plain;
    }
    const std::string inner = from_root(path);
    if (inner.empty()) return refuse("is no file below " + changed_.root.string());
    changed_.files.insert(inner);
    // Through a linked folder the file has another name, which may be the one that others know.
    std::error_code error;
    const fs::path whole = changed_.root / inner;
    const fs::path folder = fs::weakly_canonical(whole.parent_path(), error);
    if (error) return;
    if (const std::string real = inside(changed_.root, folder / whole.filename()); !real.empty())
      changed_.files.insert(real);
    if (!fs::is_directory(whole, error)) return;
    if (const std::string real = inside(changed_.root, fs::weakly_canonical(whole, error));
        !error && !real.empty())
      changed_.files.insert(real);
  }

  // As git quotes (quote.c): \a \b \f \n \r \t \v \" \\ and three octal digits.
  static std::optional<std::string> unquoted(const std::string& text) {
    if (text.size() < 2 || text.back() != '"') return std::nullopt;
    std::string out;
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
      if (text[i] == '"') return std::nullopt;
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      if (++i + 1 >= text.size()) return std::nullopt;
      static constexpr std::string_view kLetters = "abfnrtv\"\\", kMeant = "\a\b\f\n\r\t\v\"\\";
      if (const std::size_t at = kLetters.find(text[i]); at != std::string_view::npos) {
        out += kMeant[at];
        continue;
      }
      int value = 0;
      for (int digit = 0; digit < 3; ++digit) {
        if (i + 1 >= text.size() || text[i] < '0' || text[i] > '7') return std::nullopt;
        value = value * 8 + (text[i] - '0');
        if (digit < 2) ++i;
      }
      if (value > 255) return std::nullopt;
      out += static_cast<char>(value);
    }
    return out;
  }

  std::string from_root(const std::string& text) const {
    fs::path path(text);
    if (path.is_absolute()) {
      // The folder's links are followed, the file's own are not: it is what changed.
      path = path.lexically_normal();
      if (!path.has_filename()) path = path.parent_path();
      std::error_code error;
      const fs::path folder = fs::weakly_canonical(path.parent_path(), error);
      return error ? "" : inside(changed_.root, folder / path.filename());
    }
    path = (changed_.root / path).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    return inside(changed_.root, path);
  }

  ChangedFiles changed_;
  std::vector<scenario::Problem> problems_;
};

}  // namespace

ChangedFiles read_changed(const std::vector<std::string>& words, std::istream& in,
                          const fs::path& folder) {
  Reader reader(folder);
  for (const std::string& word : words) reader.word(word, in);
  return reader.take();
}

}  // namespace warmgate::cli
