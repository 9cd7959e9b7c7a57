#include "harness/scenario/fields.h"

#include "harness/scenario/field_makers.h"
#include "harness/scenario/seams.h"
#include "harness/scenario/sections.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::scenario {

const Field* Field::find(std::string_view key) const {
  for (const Field& field : fields) {
    if (field.name == key) return &field;
  }
  return nullptr;
}

std::vector<std::string> key_names(const Field& object) {
  std::vector<std::string> out;
  for (const Field& field : object.fields) out.emplace_back(field.name);
  return out;
}

namespace {

using namespace makers;

std::vector<Field> overlay_fields() {
  std::vector<Field> out = {target_section()};
  for (Field& field : artefact_fields()) out.push_back(std::move(field));
  for (Field field : {behaviour_names(), seams_section(), model_section(), limits_section(),
                      parallel_section(), drafter_section(), workload_section(), architectures(),
                      seed(), probe_keys(), checks_section(), ranks_section()}) {
    out.push_back(std::move(field));
  }
  return out;
}

Field needs_section() {
  return object("needs",
                "what the machine must have; else the scenario is skipped, with the reason",
                {integer("gpus", "GPUs", 0, 1024), real("gpu_gib", "GiB of memory per GPU", 0, 1e6),
                 one_or_more("arch", "one of these GPU architectures", element(Type::kArch)),
                 boolean("nvrtc", "the run-time compiler of a CUDA toolkit"),
                 one_or_more("files",
                             "what has to be there, from this file's folder, such as an engine "
                             "that a set-up script installs",
                             element(Type::kText))});
}

Field source_section() {
  return object("source", "where the regression is public",
                {text("repo", "owner/name"), reference("issue", "issue number"),
                 reference("fix", "pull request that fixed it"),
                 reference("introduced_by", "pull request that brought it"),
                 reference("commit", "commit"), text("note", "anything else")});
}

Field devices_section() {
  const auto overlay = [](std::string_view name, std::string_view meaning) {
    return object(name, meaning,
                  {model_section(), parallel_section(), limits_section(), workload_section(),
                   expect_section()});
  };
  return object("devices", "overlays that count when that device is chosen, below the variants",
                {overlay("meta", "shapes and accounting only"),
                 overlay("cpu", "executed on the host"), overlay("cuda", "executed on a GPU")});
}

}  // namespace

const Field& overlay_field() {
  static const Field field = [] {
    Field out = object("", "an overlay on a scenario", overlay_fields());
    out.either = artefact_choices();
    return out;
  }();
  return field;
}

const Field& scenario_field() {
  static const Field field = [] {
    Field out = object("",
                       "a scenario: what to start, with which limits, what work to serve, what "
                       "to expect, how much worse is too much",
                       {name("scenario", "its name")});
    auto add = [&](Field more) { out.fields.push_back(std::move(more)); };
    add(text("about", "what it is for, in a sentence"));
    add(source_section());
    add(list("tags", "words to select scenarios by", element(Type::kName)));
    add(text("extends", "another scenario of the same tree, on which this one is laid"));
    for (Field& section : overlay_fields()) add(std::move(section));
    out.either = artefact_choices();
    add(devices_section());
    Field variant = overlay_field();
    variant.meaning = "an overlay: another behaviour, limit, model or target";
    add(named("variants", "named overlays, run one by one", Keys::kVariant, std::move(variant)));
    Field matrix = make("matrix", Type::kMatrix,
                        "key paths with lists of values: every variant once per combination, named "
                        "A[parallel.tp=2]");
    add(std::move(matrix));
    add(expect_section());
    add(gate_section());
    add(allow_section());
    add(needs_section());
    add(list("touches", "globs over the paths whose change asks for this scenario",
             element(Type::kText)));
    return out;
  }();
  return field;
}

const Field& preset_field() {
  static const Field field = [] {
    Field model = model_section();
    // A preset is the lowest layer: it stands on nothing and writes its ratios out.
    std::erase_if(model.fields,
                  [](const Field& f) { return f.name == "preset" || f.name == "layers"; });
    model.either.clear();
    Field drafters = named("drafters", "constants of the draft model, by method",
                           Keys::kDrafterMethod, drafter_constants());
    return object(
        "", "a model preset",
        {required(name("preset", "its name, that of the file")), text("about", "what it is"),
         list("source", "public places of the values", element(Type::kText)),
         required(std::move(model)), std::move(drafters)});
  }();
  return field;
}

const Field& behaviour_field() {
  static const Field field = [] {
    Field origin = object(
        "", "where the modelled choice is public",
        {text("repo", "owner/name"), reference("pull", "pull request"), reference("issue", "issue"),
         reference("commit", "commit"), text("path", "file"), text("symbol", "function or class"),
         text("dates", "when it came and went"), text("note", "anything else")});
    Field drafter =
        object("drafter", "counts only where a drafter is active", {topk_indices_buffer()});
    return object(
        "", "a behaviour: seam values of one revision, or the delta of one change",
        {required(name("behaviour", "its name, that of the file")),
         text("about", "what it changes"),
         required(list("origin", "where the modelled choices are public", std::move(origin))),
         text("as_modelled", "what of the real change this is, and what it is not"),
         seams_section(), std::move(drafter)});
  }();
  return field;
}

}  // namespace warmgate::scenario
