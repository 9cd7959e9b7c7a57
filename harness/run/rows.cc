#include "harness/run/rows.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <system_error>

#include "harness/trace/secrets.h"
#include "harness/trace/wire.h"

namespace warmgate::run {

using nlohmann::ordered_json;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, size);
}

namespace {

void mask_strings(ordered_json& value, const std::vector<std::string>& secrets) {
  if (value.is_string()) {
    value = trace::mask_secrets(value.get_ref<const std::string&>(), secrets);
  } else if (value.is_structured()) {
    for (auto& item : value) mask_strings(item, secrets);
  }
}

ordered_json start_row(std::string_view state) {
  return {{"schema", kRowsSchema}, {"state", state}, {"at", utc_now()}, {"t", trace::now_ns()}};
}

}  // namespace

RowWriter::RowWriter(const std::filesystem::path& path, std::vector<std::string> secrets)
    : secrets_(std::move(secrets)) {
  if (path.empty()) return;
  path_ = path;
  std::error_code ignored;  // open() says it better
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  // O_APPEND: rows of several threads never tear, and a file that is rotated away stays legal.
  // O_NONBLOCK while opening: a FIFO that nobody reads would keep us waiting for ever.
  fd_ = UniqueFd(::open(path.c_str(),
                        O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                        0644));
  if (fd_.valid()) (void)::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) & ~O_NONBLOCK);
  if (!fd_.valid()) {
    if (errno == ENXIO)
      throw std::runtime_error("cannot write " + path.string() + ": nobody reads it");
    throw std::system_error(errno, std::generic_category(), "cannot write " + path.string());
  }
}

void RowWriter::gate(std::string_view state, ordered_json fields) {
  if (!is_open()) return;
  ordered_json row = start_row(state);
  if (fields.is_object()) row.update(fields);
  write(std::move(row));
}

void RowWriter::run(std::string_view state, const RowKey& key, ordered_json fields) {
  if (!is_open()) return;
  ordered_json row = start_row(state);
  row["scenario"] = key.scenario;
  row["path"] = key.scenario_path;
  row["variant"] = key.variant;
  row["repeat"] = key.repeat;
  if (fields.is_object()) row.update(fields);
  write(std::move(row));
}

void RowWriter::write(ordered_json row) {
  mask_strings(row, secrets_);
  // What a worker said may hold any bytes; a row must be legal JSON all the same.
  std::string line = row.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  line += '\n';
  const std::lock_guard lock(mutex_);
  ++rows_;
  if (torn_) line.insert(0, "\n");  // what was lost must not spoil this one too
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(fd_.get(), line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (error_ == 0) error_ = n < 0 ? errno : EIO;
      ++lost_;
      torn_ = torn_ || done > 0;
      return;
    }
    done += static_cast<std::size_t>(n);
  }
  torn_ = false;
}

std::string RowWriter::finish() {
  const std::lock_guard lock(mutex_);
  if (!fd_.valid()) return "";
  // Network file systems say only here that there was no room.
  if (::close(fd_.release()) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return "";
  std::string text = "cannot write " + path_.string() + ": " + std::strerror(error_);
  if (lost_ > 0)
    text += " (" + std::to_string(lost_) + " of " + std::to_string(rows_) + " rows are missing)";
  return text;
}

}  // namespace warmgate::run
