// answers-differ: a server that says the same to everybody serves nobody, and every count is right.
#include <fmt/format.h>

#include <map>
#include <set>

#include "harness/contract/builtin.h"
#include "harness/contract/fold.h"
#include "harness/contract/view.h"

namespace warmgate::contract {
namespace {

constexpr const char* kName = "answers-differ";
constexpr std::size_t kEnough = 3;       // answers
constexpr std::int64_t kLongEnough = 8;  // tokens of each: short ones may well agree

class AnswersDiffer : public Contract {
 public:
  std::string_view name() const override { return kName; }
  std::string_view promise() const override {
    return "requests with different prompts do not all get the same answer";
  }
  std::vector<std::string> needs() const override { return {}; }

  Result judge(const Context& context) const override {
    const View& view = view_of(context);
    std::set<std::string> answers;
    std::vector<std::size_t> events;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < view.size(); ++i) {
      const trace::Event& e = view.event(i);
      if (e.ev != "request" || e.src != "http" || !e.flag("ok")) continue;
      // What a grammar allows may be one thing.
      if (text(e, "class") == "grammar" || e.num("tokens") < kLongEnough) continue;
      if (text(e, "text_sha256").empty()) continue;
      answers.emplace(text(e, "text_sha256"));
      ++seen;
      if (events.size() < kMaxProof) events.push_back(i);
    }
    if (seen < kEnough) return not_applicable(kName, "fewer than three answers of 8 tokens");
    Result result = conclude(kName, {}, State::kKept, "");
    if (answers.size() > 1) return result;
    Finding f;
    f.contract = kName;
    f.phase = "serve";
    f.key = "same-answer";
    f.expected = "answers that differ, as the prompts do";
    f.seen = fmt::format("one answer to {} prompts", seen);
    f.message = fmt::format("{}; weights that are not loaded may say that", f.seen);
    f.events = std::move(events);
    result.notes.push_back(std::move(f));
    return result;
  }
};

}  // namespace

const Contract& answers_differ_contract() {
  static const AnswersDiffer contract;
  return contract;
}

}  // namespace warmgate::contract
