// Which compile keys a dispatch function gives over alternatives of its inputs. A dispatch function
// is a template over how it reads its inputs: serving reads a struct, tracing reads alternatives,
// so both run the same expressions. Modelled on vLLM at d40c3e3c00,
// model_executor/warmup/jit_warmup.py _trace_dispatch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace warmgate::engine {

/// begin, begin + step, … below end. Step 0 and a step that leads away from the end are errors.
struct IntRange {
  std::int64_t begin = 0, end = 0, step = 1;
  std::vector<std::int64_t> values() const;
};

/// How serving reads its inputs.
template <typename Inputs>
class StructReader {
 public:
  explicit StructReader(const Inputs& inputs) : inputs_(inputs) {}
  std::int64_t operator()(std::int64_t Inputs::*field) const { return inputs_.*field; }
  bool operator()(bool Inputs::*field) const { return inputs_.*field; }

 private:
  const Inputs& inputs_;
};

/// Alternatives for the inputs of one dispatch function. Throws std::invalid_argument if an input
/// is given twice, without alternatives, or in a row of another length.
template <typename Inputs>
class WarmupInputs {
 public:
  using Field = std::variant<std::int64_t Inputs::*, bool Inputs::*>;
  struct Group {  // inputs that change in lock step
    std::vector<Field> fields;
    std::vector<std::vector<std::int64_t>> rows;
  };

  WarmupInputs& values(Field field, const std::vector<std::int64_t>& alternatives) {
    std::vector<std::vector<std::int64_t>> rows;
    for (const std::int64_t value : alternatives) rows.push_back({value});
    return zip({field}, std::move(rows));
  }
  WarmupInputs& range(Field field, const IntRange& range) { return values(field, range.values()); }
  WarmupInputs& zip(std::vector<Field> fields, std::vector<std::vector<std::int64_t>> rows) {
    if (rows.empty()) throw std::invalid_argument("warmup input without alternatives");
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (find(fields[i]) != nullptr || std::count(fields.begin(), fields.end(), fields[i]) > 1) {
        throw std::invalid_argument("warmup input " + std::to_string(i + 1) + " of group " +
                                    std::to_string(groups_.size() + 1) + " is given twice");
      }
    }
    for (const auto& row : rows) {
      if (row.size() != fields.size()) {
        throw std::invalid_argument("a warmup row has " + std::to_string(row.size()) +
                                    " values for " + std::to_string(fields.size()) + " inputs");
      }
    }
    groups_.push_back({std::move(fields), std::move(rows)});
    return *this;
  }

  const std::vector<Group>& groups() const { return groups_; }
  /// The group and column of a field; null if it was not given.
  const Group* find(Field field, std::size_t* column = nullptr) const {
    for (const Group& group : groups_) {
      const auto it = std::find(group.fields.begin(), group.fields.end(), field);
      if (it == group.fields.end()) continue;
      if (column != nullptr) *column = static_cast<std::size_t>(it - group.fields.begin());
      return &group;
    }
    return nullptr;
  }

 private:
  std::vector<Group> groups_;
};

/// How tracing reads inputs: from the current row of each group; notes which groups were asked.
template <typename Inputs>
class TraceReader {
 public:
  explicit TraceReader(const WarmupInputs<Inputs>& inputs)
      : row(inputs.groups().size(), 0), used(inputs.groups().size(), false), inputs_(inputs) {}
  std::int64_t operator()(std::int64_t Inputs::*field) { return read(field); }
  bool operator()(bool Inputs::*field) { return read(field) != 0; }

  /// To the next combination of the groups used so far; false after the last.
  bool advance() {
    for (std::size_t i = row.size(); i-- > 0;) {
      if (!used[i]) continue;
      if (++row[i] < inputs_.groups()[i].rows.size()) return true;
      row[i] = 0;
    }
    return false;
  }

  std::vector<std::size_t> row;  // of each group
  std::vector<bool> used;

 private:
  std::int64_t read(typename WarmupInputs<Inputs>::Field field) {
    std::size_t column = 0;
    const auto* group = inputs_.find(field, &column);
    if (group == nullptr)
      throw std::invalid_argument("dispatch asks for an input that has no alternatives");
    const auto index = static_cast<std::size_t>(group - inputs_.groups().data());
    used[index] = true;
    return group->rows[row[index]][column];
  }
  const WarmupInputs<Inputs>& inputs_;
};

/// Keys of every combination of alternatives, de-duplicated in order; the input given first changes
/// slowest. Inputs that dispatch does not read are dropped before expansion: a branch may read more
/// than another, so expansion starts over when a new one turns up. `evaluations`, if given, counts
/// the calls of the last expansion.
template <typename Inputs, typename Dispatch>
auto trace_dispatch(const WarmupInputs<Inputs>& inputs, const Dispatch& dispatch,
                    std::size_t* evaluations = nullptr) {
  using CompileKey = decltype(dispatch(std::declval<TraceReader<Inputs>&>()));
  std::vector<CompileKey> keys;
  TraceReader<Inputs> reader(inputs);
  std::vector<bool> expanded;
  do {  // until an expansion over the inputs in use turns up no further one
    expanded = reader.used;
    keys.clear();
    std::fill(reader.row.begin(), reader.row.end(), 0);
    std::size_t calls = 0;
    do {
      CompileKey key = dispatch(reader);
      ++calls;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(std::move(key));
    } while (reader.used == expanded && reader.advance());
    if (evaluations != nullptr) *evaluations = calls;
  } while (reader.used != expanded);
  return keys;
}

}  // namespace warmgate::engine
