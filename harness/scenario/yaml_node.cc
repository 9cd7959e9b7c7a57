#include "harness/scenario/yaml_node.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

#include "harness/scenario/problems.h"
#include "harness/scenario/text_file.h"

namespace warmgate::scenario {

NodePtr Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
}

namespace {

// Thrown out of the parser once a problem has been noted that makes going on pointless.
struct Abort {};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const std::string> file, Problems& problems)
      : file_(std::move(file)), problems_(problems) {}

  NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark, "a second document; a file holds exactly one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (wants_key()) fail(mark, "an empty key");
    auto node = start(Node::Kind::kNull, mark);
    // yaml-cpp marks nothing at what comes after it; its key says where it is missing.
    if (!stack_.empty() && stack_.back().has_key) node->place = stack_.back().key_place;
    finish(node, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    if (wants_key()) {
      take_key(mark, value);
      return;
    }
    auto node = start(Node::Kind::kScalar, mark);
    node->text = value;
    node->quoted = tag == "!";
    finish(node, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (wants_key()) fail(mark, "an alias as a key; keys are plain text");
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) fail(mark, "an alias inside the value that it names");
    count(mark, it->second->weight);
    if (stack_.size() + it->second->height > kMaxDepth) too_deep(mark);
    attach(it->second);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor;
    bool has_key = false;  // the next value belongs to `key`
    bool skip = false;     // ... and is a duplicate, so it is dropped
    std::string key;
    Place key_place;
  };

  Place place(const YAML::Mark& mark) const {
    return mark.is_null() ? Place{file_, 0, 0} : Place{file_, mark.line + 1, mark.column + 1};
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) {
    problems_.add(place(mark), path(), message);
    throw Abort{};
  }
  [[noreturn]] void too_deep(const YAML::Mark& mark) {
    fail(mark, fmt::format("nested more than {} levels deep; the language needs fewer", kMaxDepth));
  }
  void count(const YAML::Mark& mark, std::size_t nodes) {
    total_ += nodes;
    if (total_ > kMaxNodes) {
      fail(mark, fmt::format("more than {} values once aliases are expanded", kMaxNodes));
    }
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    fail(mark, "a tag (" + shown(tag) + "); the language has none, types follow from the keys");
  }
  bool wants_key() const {
    return !stack_.empty() && stack_.back().node->is_map() && !stack_.back().has_key;
  }
  void take_key(const YAML::Mark& mark, const std::string& key) {
    Frame& frame = stack_.back();
    if (key == "<<") {
      fail(mark, "a merge key; use extends, variants or matrix to share values");
    }
    if (key.size() > kMaxKeyBytes) {
      fail(mark, fmt::format("a key of {} bytes; at most {}", key.size(), kMaxKeyBytes));
    }
    frame.has_key = true;
    frame.skip = false;
    frame.key = key;
    frame.key_place = place(mark);
    for (const Node::Entry& entry : frame.node->entries) {
      if (entry.key != key) continue;
      problems_.add(frame.key_place, path(),
                    fmt::format("given twice, first in line {}", entry.place.line));
      frame.skip = true;
    }
  }

  // Key path of the value that is about to come.
  std::string path() const {
    std::string out;
    for (const Frame& frame : stack_) {
      if (frame.node->is_list()) {
        out += fmt::format("[{}]", frame.node->items.size());
      } else if (frame.has_key) {
        out += (out.empty() ? "" : ".") + frame.key;
      }
    }
    return out;
  }

  std::shared_ptr<Node> start(Node::Kind kind, const YAML::Mark& mark) {
    count(mark, 1);
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->place = place(mark);
    node->path = path();
    return node;
  }
  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check_tag(mark, tag);
    if (wants_key()) fail(mark, "a list or map as a key; keys are plain text");
    if (stack_.size() >= kMaxDepth) too_deep(mark);
    stack_.push_back({start(kind, mark), anchor, false, false, "", {}});
  }
  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    auto widen = [&](const NodePtr& child) {
      frame.node->weight += child->weight;
      frame.node->height = std::max(frame.node->height, child->height + 1);
    };
    for (const NodePtr& item : frame.node->items) widen(item);
    for (const Node::Entry& entry : frame.node->entries) widen(entry.value);
    finish(frame.node, frame.anchor);
  }
  void finish(const std::shared_ptr<Node>& node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    attach(node);
  }
  void attach(const NodePtr& node) {
    if (stack_.empty()) {
      root_ = node;
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node->is_list()) {
      frame.node->items.push_back(node);
    } else {
      if (!frame.skip) frame.node->entries.push_back({frame.key, frame.key_place, node});
      frame.has_key = false;
    }
  }

  std::shared_ptr<const std::string> file_;
  Problems& problems_;
  NodePtr root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, NodePtr> anchors_;
  std::size_t total_ = 0;
  int documents_ = 0;
};

std::string line_of(std::string_view text, int number) {
  std::size_t begin = 0;
  for (int i = 1; i < number && begin != std::string_view::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

// yaml-cpp's words are short; the commonest cause in this language deserves better ones.
std::string explain(const YAML::Exception& error, const std::string& line) {
  std::string message = "not YAML: " + error.msg;
  const auto mark = line.find(": >");
  if (mark != std::string::npos) {
    message += "; a bound that starts with > is quoted: \"> 5\"";
  } else if (error.msg == "illegal map value") {
    message += "; a colon inside a value wants quotes, or the indentation is off";
  }
  return message;
}

}  // namespace

NodePtr parse_yaml(std::string_view text, const std::string& file, Problems& problems) {
  const auto name = std::make_shared<const std::string>(file);
  if (!check_text(text, name, problems)) return nullptr;
  std::istringstream in{std::string(text)};
  TreeBuilder builder(name, problems);
  try {
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Abort&) {
    return nullptr;
  } catch (const YAML::Exception& error) {
    const bool somewhere = !error.mark.is_null();
    const Place place{name, somewhere ? error.mark.line + 1 : 0,
                      somewhere ? error.mark.column + 1 : 0};
    problems.add(place, "", explain(error, line_of(text, place.line)));
    return nullptr;
  }
  if (!builder.root() || builder.root()->kind == Node::Kind::kNull) {
    problems.add(Place{name, 0, 0}, "", "empty; a scenario has at least the key scenario");
    return nullptr;
  }
  return builder.root();
}

NodePtr read_yaml(const std::filesystem::path& path, const std::string& shown_as,
                  Problems& problems) {
  const auto text = read_text(path, shown_as, problems);
  return text ? parse_yaml(*text, shown_as, problems) : nullptr;
}

}  // namespace warmgate::scenario
