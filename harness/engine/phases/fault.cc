#include "harness/engine/phases/fault.h"

#include <new>

#include "harness/engine/memory/device_memory.h"
#include "harness/engine/memory/workspace.h"
#include "harness/engine/ops/device_fault.h"
#include "harness/engine/ops/execute.h"
#include "harness/engine/parallel/collectives.h"

namespace warmgate::engine {

namespace {

const char* type_of(const std::exception& error) {
  if (dynamic_cast<const ResourceMissing*>(&error)) return "AssertionError";
  if (dynamic_cast<const CollectiveError*>(&error)) return "CollectiveError";
  if (dynamic_cast<const OutOfMemory*>(&error)) return "OutOfMemory";
  if (const auto* device = dynamic_cast<const DeviceFault*>(&error))
    return device->code == "cudaErrorMemoryAllocation" ? "OutOfMemory" : "DeviceError";
  if (dynamic_cast<const WorkspaceLocked*>(&error)) return "WorkspaceLocked";
  if (dynamic_cast<const OpRefused*>(&error)) return "OpRefused";
  if (dynamic_cast<const CompileError*>(&error)) return "CompileError";
  if (dynamic_cast<const std::bad_alloc*>(&error)) return "MemoryError";
  if (dynamic_cast<const std::logic_error*>(&error)) return "LogicError";
  return "RuntimeError";
}

void add_layer(trace::Line& line, const LayerRef& layer) {
  line.num("layer", layer.id).str("layer_kind", layer.kind).str("role", layer.role);
}

// "int f(int)" of namespace a::{anonymous} → "f"; compilers and versions spell the rest
// differently.
std::string_view plain_name(std::string_view function) {
  std::string_view name = function.substr(0, function.find('('));
  if (const std::size_t at = name.find_last_of(": *&"); at != std::string_view::npos)
    name.remove_prefix(at + 1);
  return name.empty() ? function : name;
}

// From the source tree's root on, wherever it was built.
std::string_view in_tree(std::string_view file) {
  const std::size_t at = file.rfind("harness/engine/");
  return at == std::string_view::npos ? file : file.substr(at);
}

void add_place(trace::Line& line, const std::string& function, const std::string& file, int at) {
  line.str("function", plain_name(function)).str("file", in_tree(file)).num("line", at);
}

}  // namespace

trace::Line fault_line(const std::exception& error, std::string_view phase) {
  trace::Line line("fault");
  line.str("type", type_of(error)).str("message", error.what()).str("phase", phase);
  line.strings("stack", {});
  if (const auto* missing = dynamic_cast<const ResourceMissing*>(&error)) {
    add_place(line, missing->function, missing->file, missing->line);
    add_layer(line, missing->layer);
    line.str("resource", missing->resource);
  } else if (const auto* locked = dynamic_cast<const WorkspaceLocked*>(&error)) {
    add_place(line, locked->function, locked->file, locked->line);
    add_layer(line, locked->layer);
  } else if (const auto* refused = dynamic_cast<const OpRefused*>(&error)) {
    add_layer(line, refused->layer);
    line.str("kernel", refused->kernel);
  } else if (const auto* device = dynamic_cast<const DeviceFault*>(&error)) {
    line.str("kernel", device->call).str("code", device->code);
  } else if (const auto* memory = dynamic_cast<const OutOfMemory*>(&error)) {
    line.num("needed_bytes", memory->needed).num("free_bytes", memory->free);
  } else if (const auto* collective = dynamic_cast<const CollectiveError*>(&error)) {
    line.str("kind", collective->kind);
    if (collective->peer >= 0) line.num("peer", collective->peer);
  }
  return line;
}

}  // namespace warmgate::engine
