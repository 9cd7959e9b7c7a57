#include "harness/target/hang/last_calls.h"

#include <cstring>
#include <memory>

#include "harness/target/hang/regular_file.h"
#include "harness/trace/wire_calls.h"

namespace warmgate::target {

std::optional<ProcessCalls> read_last_calls(const std::filesystem::path& file,
                                            std::int64_t now_ns) {
  const std::string bytes = read_regular(file, sizeof(trace::CallTableFile));
  const auto table = std::make_unique<trace::CallTableFile>();
  if (bytes.size() != sizeof *table) return std::nullopt;
  std::memcpy(static_cast<void*>(table.get()), bytes.data(), bytes.size());
  if (std::memcmp(table->head.magic, trace::kCallTableMagic, sizeof table->head.magic) != 0 ||
      table->head.slot_bytes != sizeof(trace::CallSlot)) {
    return std::nullopt;
  }
  ProcessCalls out;
  out.pid = static_cast<pid_t>(table->head.pid);
  for (const trace::CallSlot& slot : table->slots) {
    if (slot.tid.load() <= 0) continue;
    LastCall each;
    each.tid = static_cast<long>(slot.tid.load());
    each.calls = slot.calls.load();
    each.call.assign(slot.call, ::strnlen(slot.call, sizeof slot.call));
    const std::int64_t since = slot.since_ns.load();
    if (since > 0 && since <= now_ns) each.inside_s = static_cast<double>(now_ns - since) / 1e9;
    out.threads.push_back(std::move(each));
  }
  return out;
}

}  // namespace warmgate::target
