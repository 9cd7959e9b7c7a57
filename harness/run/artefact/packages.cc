#include "harness/run/artefact/packages.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "harness/run/artefact/files.h"
#include "harness/trace/sha256.h"

namespace warmgate::run {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostMetadata = 4 << 20, kMostRecord = 64 << 20;
constexpr std::size_t kMostPackages = 20000, kMostChanged = 50;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// The value of a header of METADATA; headers end at the first empty line.
std::string metadata_header(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) break;
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    bool same = true;
    for (std::size_t i = 0; i < name.size(); ++i) same &= (line[i] | 32) == (name[i] | 32);
    if (!same) continue;
    line.remove_prefix(name.size() + 1);
    const std::size_t begin = line.find_first_not_of(" \t");
    return begin == std::string_view::npos ? "" : std::string(line.substr(begin, 200));
  }
  return "";
}

// "numpy-1.26.4.dist-info" → numpy, 1.26.4.
void name_from_folder(const std::string& folder, verdict::Package& package) {
  const std::string stem = folder.substr(0, folder.rfind('.'));
  const std::size_t dash = stem.find('-');
  if (package.name.empty()) package.name = stem.substr(0, dash);
  if (package.version.empty() && dash != std::string::npos) {
    const std::size_t end = stem.find('-', dash + 1);  // an egg's Python version follows
    package.version = stem.substr(dash + 1, end == std::string::npos ? end : end - dash - 1);
  }
}

struct RecordLine {
  std::string path, hash, size;
};

// A line of RECORD: CSV of three fields, quoted where the path has a comma.
RecordLine record_line(std::string_view line) {
  RecordLine out;
  std::size_t at = 0;
  if (!line.empty() && line.front() == '"') {
    for (at = 1; at < line.size(); ++at) {
      if (line[at] != '"') {
        out.path += line[at];
      } else if (at + 1 < line.size() && line[at + 1] == '"') {
        out.path += line[++at];
      } else {
        ++at;
        break;
      }
    }
  } else {
    at = std::min(line.find(','), line.size());
    out.path = line.substr(0, at);
  }
  if (at < line.size()) ++at;
  const std::size_t comma = std::min(line.find(',', at), line.size());
  out.hash = line.substr(std::min(at, line.size()), comma - std::min(at, comma));
  if (comma < line.size()) out.size = line.substr(comma + 1);
  return out;
}

// What depends on the place and the installer, not on the distribution.
bool is_incidental(std::string_view path) {
  if (path.substr(0, 3) == "../" || path.substr(0, 1) == "/") return true;
  if (ends_with(path, ".pyc")) return true;
  for (const std::string_view own : {".dist-info/RECORD", ".dist-info/INSTALLER",
                                     ".dist-info/REQUESTED", ".dist-info/direct_url.json"}) {
    if (ends_with(path, own)) return true;
  }
  return false;
}

// RECORD writes hashes as URL-safe base64 without padding.
std::string hex_of_base64(std::string_view text) {
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : text) {
    unsigned value = 0;
    if (c >= 'A' && c <= 'Z')
      value = static_cast<unsigned>(c - 'A');
    else if (c >= 'a' && c <= 'z')
      value = static_cast<unsigned>(c - 'a') + 26;
    else if (c >= '0' && c <= '9')
      value = static_cast<unsigned>(c - '0') + 52;
    else if (c == '-' || c == '+')
      value = 62;
    else if (c == '_' || c == '/')
      value = 63;
    else
      break;
    bits = (bits << 6 | value) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += fmt::format("{:02x}", (bits >> held) & 0xff);
  }
  return out;
}

// Whether the file is another one than was installed. Cheap for nearly all: only what was written
// after RECORD, or has another size, is read.
bool is_changed(const fs::path& site, const RecordLine& line, const timespec& installed) {
  if (line.hash.rfind("sha256=", 0) != 0) return false;
  struct stat info {};
  const fs::path file = site / line.path;
  if (::stat(file.c_str(), &info) != 0) return true;  // gone
  if (!S_ISREG(info.st_mode)) return true;
  const bool same_size = line.size.empty() || line.size == std::to_string(info.st_size);
  // Installers write RECORD last.
  const bool before =
      info.st_mtim.tv_sec < installed.tv_sec ||
      (info.st_mtim.tv_sec == installed.tv_sec && info.st_mtim.tv_nsec <= installed.tv_nsec);
  if (same_size && before) return false;
  if (!same_size) return true;
  return sha256_of(file) != hex_of_base64(std::string_view(line.hash).substr(7));
}

void read_record(const fs::path& site, const fs::path& record, Installed& out) {
  const std::string text = read_bounded(record, kMostRecord);
  if (text.empty()) return;
  struct stat info {};
  ::stat(record.c_str(), &info);
  std::vector<std::string> own;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view raw = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
    if (raw.empty()) continue;
    const RecordLine line = record_line(raw);
    out.files.push_back(line.path);
    if (is_incidental(line.path)) continue;
    own.push_back(line.path + "," + line.hash);
    if (out.package.changed.size() < kMostChanged && is_changed(site, line, info.st_mtim))
      out.package.changed.push_back(line.path);
  }
  std::sort(own.begin(), own.end());
  std::string all;
  for (const std::string& line : own) all += line + "\n";
  out.package.digest = trace::sha256_hex(all);
}

// direct_url.json (PEP 610): what was installed from a folder, a file or a repository.
void read_origin(const fs::path& info, verdict::Package& package) {
  const auto origin =
      nlohmann::json::parse(read_bounded(info / "direct_url.json", kMostMetadata), nullptr, false);
  if (!origin.is_object()) return;
  const auto text = [](const nlohmann::json& from, const char* key) {
    return from.contains(key) && from[key].is_string() ? from[key].get<std::string>()
                                                       : std::string();
  };
  package.origin = text(origin, "url");
  if (origin.contains("vcs_info") && origin["vcs_info"].is_object())
    package.commit = text(origin["vcs_info"], "commit_id");
  const auto folder = origin.find("dir_info");
  package.editable = folder != origin.end() && folder->is_object() &&
                     folder->value("editable", nlohmann::json(false)) == true;
}

// 0.23.1rc1.dev10+g837eae6458.d20260731 → 837eae6458: what setuptools-scm writes.
std::string commit_in_version(const std::string& version) {
  const std::size_t plus = version.find("+g");
  if (plus == std::string::npos) return "";
  const std::size_t end = version.find_first_not_of("0123456789abcdef", plus + 2);
  const std::string hash =
      version.substr(plus + 2, end == std::string::npos ? end : end - plus - 2);
  return hash.size() >= 7 && hash.size() <= 40 ? hash : "";
}

Installed read_one(const fs::path& site, const fs::path& info) {
  Installed out;
  out.info = info;
  std::error_code failed;
  const bool egg = info.extension() == ".egg-info";
  const bool folder = fs::is_directory(info, failed);
  const fs::path metadata = !folder ? info : egg ? info / "PKG-INFO" : info / "METADATA";
  const std::string text = read_bounded(metadata, kMostMetadata);
  out.package.name = metadata_header(text, "Name");
  out.package.version = metadata_header(text, "Version");
  name_from_folder(info.filename().string(), out.package);
  if (folder) {
    read_origin(info, out.package);
    read_record(site, info / "RECORD", out);
  }
  if (out.package.commit.empty()) out.package.commit = commit_in_version(out.package.version);
  return out;
}

}  // namespace

bool looks_like_venv(const fs::path& root) {
  std::error_code failed;
  return fs::is_regular_file(root / "pyvenv.cfg", failed);
}

Venv read_venv(const fs::path& root) {
  const auto wrong = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("{} is no virtual environment: {}", root.string(), why));
  };
  std::error_code failed;
  Venv out;
  out.root = fs::canonical(root, failed);
  if (failed) wrong(failed.message());
  if (!fs::is_directory(out.root, failed)) wrong("it is no folder");
  if (!looks_like_venv(out.root)) wrong("it has no pyvenv.cfg");
  const fs::path python = out.root / "bin/python";
  out.python = fs::canonical(python, failed);
  if (failed) {
    wrong(fs::is_symlink(python, failed)
              ? "its bin/python leads to " + fs::read_symlink(python, failed).string() +
                    ", which is not there; it was moved, or its Python removed"
              : "it has no bin/python");
  }
  if (::access(out.python.c_str(), X_OK) != 0) wrong("its bin/python cannot be executed");
  const std::string config = read_bounded(out.root / "pyvenv.cfg", kMostMetadata);
  for (std::size_t at = 0; at < config.size();) {
    const std::size_t end = std::min(config.find('\n', at), config.size());
    const std::string line = config.substr(at, end - at);
    at = end + 1;
    const std::size_t equal = line.find('=');
    if (equal == std::string::npos) continue;
    const auto trimmed = [](std::string text) {
      text.erase(0, text.find_first_not_of(" \t"));
      const std::size_t last = text.find_last_not_of(" \t\r");
      return text.substr(0, last == std::string::npos ? 0 : last + 1);
    };
    const std::string key = trimmed(line.substr(0, equal)), value = trimmed(line.substr(equal + 1));
    // venv writes version, uv version_info, virtualenv both.
    if (key == "version" || (key == "version_info" && out.version.empty())) out.version = value;
    if (key == "include-system-site-packages") out.sees_system = value == "true";
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(out.root / "lib", failed)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("python3", 0) == 0 && fs::is_directory(entry.path() / "site-packages", failed))
      found.push_back(entry.path() / "site-packages");
  }
  if (found.empty()) wrong("it has no lib/python3.*/site-packages");
  out.site_packages = *std::max_element(found.begin(), found.end());
  return out;
}

std::vector<Installed> read_installed(const fs::path& site) {
  std::vector<fs::path> infos;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(site, failed)) {
    const std::string extension = entry.path().extension().string();
    // pip renames what it is about to remove to ~name.
    if (entry.path().filename().string().front() == '~') continue;
    if (extension == ".dist-info" || extension == ".egg-info") infos.push_back(entry.path());
    if (infos.size() == kMostPackages) break;
  }
  std::vector<Installed> out;
  for (const fs::path& info : infos) out.push_back(read_one(site, info));
  std::sort(out.begin(), out.end(), [](const Installed& a, const Installed& b) {
    const std::string x = verdict::normal_name(a.package.name),
                      y = verdict::normal_name(b.package.name);
    return x != y ? x < y : a.info < b.info;
  });
  return out;
}

std::vector<verdict::Package> packages_of(const std::vector<Installed>& installed) {
  std::vector<verdict::Package> out;
  for (const Installed& each : installed) out.push_back(each.package);
  return out;
}

std::string packages_hash(const std::vector<verdict::Package>& packages) {
  std::string all;
  for (const verdict::Package& package : packages) {
    all += verdict::normal_name(package.name) + "\n" + package.version + "\n" + package.digest;
    if (package.editable) all += "\neditable " + package.origin;
    for (const std::string& file : package.changed) all += "\nchanged " + file;
    all += "\n\n";
  }
  return trace::sha256_hex(all);
}

const Installed* owner_of(const std::vector<Installed>& installed,
                          const std::vector<std::string>& argv) {
  if (argv.empty()) return nullptr;
  const std::string script = "/bin/" + fs::path(argv.front()).filename().string();
  std::string module;
  for (std::size_t i = 1; i + 1 < argv.size() && !argv[i].empty() && argv[i][0] == '-'; ++i) {
    if (argv[i] == "-m") module = argv[i + 1].substr(0, argv[i + 1].find('.'));
  }
  for (const Installed& each : installed) {
    for (const std::string& file : each.files) {
      if (file.rfind("../", 0) == 0 && ends_with(file, script)) return &each;
      if (!module.empty() && (file.rfind(module + "/", 0) == 0 || file == module + ".py"))
        return &each;
    }
  }
  return nullptr;
}

const Installed* find_installed(const std::vector<Installed>& installed, std::string_view name) {
  for (const Installed& each : installed) {
    if (verdict::normal_name(each.package.name) == verdict::normal_name(name)) return &each;
  }
  return nullptr;
}

}  // namespace warmgate::run
