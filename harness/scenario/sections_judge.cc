// expect, gate, allow.
#include "harness/scenario/field_makers.h"
#include "harness/scenario/sections.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::scenario {

using namespace makers;

Field expect_section() {
  std::vector<std::string_view> phases(trace::phases().begin(), trace::phases().end());
  Field one = object(
      "", "what a run must come to",
      {choice("outcome", "how it ends", {"passed", "failed", "crashed", "hung", "incomplete"}),
       choice("phase", "where it breaks", std::move(phases)),
       one_or_more("contract", "what is broken", element(Type::kContract)),
       named("figures", "bounds on figures", Keys::kFigure, make("", Type::kBound, ""))});
  return with_element("expect", Type::kExpect,
                      "per variant, or directly where there are no variants", std::move(one));
}

Field gate_section() {
  Field regress = object("regress", "against the other side: worse by more than both",
                         {make("by", Type::kPercent, "per cent"),
                          make("and", Type::kFigureValue, "and this much, in the figure's unit")});
  Field rule =
      object("", "how much worse is too much",
             {make("max", Type::kFigureValue, "largest good value"),
              make("min", Type::kFigureValue, "smallest good value"), std::move(regress),
              integer("new", "entries beyond the accepted set that are still good", 0, 1000000),
              choice("direction", "which way is better", {"higher", "lower"})});
  return named("gate", "figures and contracts that decide", Keys::kFigureOrContract,
               std::move(rule));
}

Field allow_section() {
  return list("allow", "findings that are known and accepted",
              object("", "one kind of finding",
                     {required(make("contract", Type::kContract, "the contract that reports it")),
                      otherwise(text("match", "glob over the finding's key"), "*"),
                      required(text("reason", "why it is accepted")),
                      reference("issue", "where it is tracked"),
                      make("until", Type::kDate, "the day from which it counts again"),
                      one_or_more("variants", "only in these", element(Type::kText))}));
}

}  // namespace warmgate::scenario
