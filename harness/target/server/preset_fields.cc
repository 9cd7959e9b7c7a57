#include "harness/target/server/preset_fields.h"

#include "harness/scenario/field_makers.h"
#include "harness/scenario/server.h"
#include "harness/trace/vocabulary.h"

namespace warmgate::target {

using namespace scenario;
using namespace scenario::makers;

namespace {

Field text_list(std::string_view key, std::string_view meaning) {
  return list(key, meaning, element(Type::kText));
}

Field commands() {
  Field argv = required(text_list("command", "program and arguments; {model} {host} {port}"));
  argv.min_items = 1;
  return list(
      "commands", "how it is started, newest form first",
      object("", "one form",
             {text("from", "first release with it"), text("until", "first release without it"),
              std::move(argv), required(text("source", "where that is public"))}));
}

Field health() {
  Field out = list("health", "what answers about readiness; the first is waited for",
                   object("", "one endpoint",
                          {required(text("path", "its path")),
                           otherwise(integer("ok", "status that says ready", 100, 599), "200"),
                           required(choice("proves", "what the first such answer proves",
                                           {"process", "loaded", "works"})),
                           required(text("means", "its true meaning, in a sentence")),
                           boolean("while_hung", "an engine that hangs goes on answering so")}));
  out.min_items = 1;
  return out;
}

Field metrics(std::string_view key, std::string_view meaning) {
  return object(key, meaning,
                {text("path", "where they are"),
                 required(choice("kind", "their form", {"prometheus", "json", "none"})),
                 text_list("needs", "arguments without which they do not exist")});
}

Field metric_names() {
  return list(
      "metric_names", "its metrics under our names",
      object(
          "", "one metric",
          {required(text("theirs", "its name, or a JSON pointer")),
           required(name("ours", "a figure of ours")),
           required(choice("kind", "how it is read", {"counter", "gauge", "histogram", "label"})),
           text("label", "of kind label: the label that holds the value")}));
}

Field completion() {
  return object(
      "completion", "how work is asked for",
      {required(text("path", "its path")),
       required(choice("prompt", "a list of token ids, or words", {"ids", "text"})),
       required(
           make("body", Type::kAny, "of every class; {prompt} {output_tokens} … are filled in")),
       named("classes", "laid over body for requests of a class", Keys::kAnyName,
             element(Type::kAny)),
       required(choice("stream", "how the answer comes", {"sse", "json_lines", "none"})),
       text("done", "the payload that ends a stream, or a JSON pointer to what says so"),
       required(text_list("text", "JSON pointers to the new text of a chunk")),
       boolean("text_so_far", "each chunk repeats the text from its beginning"),
       text_list("tokens", "JSON pointers to the number of tokens made"),
       text_list("prompt_tokens", "JSON pointers to the length of the prompt as it counted"),
       text_list("error", "JSON pointers to the text of an error"),
       named("shows", "class → JSON pointers of which one is there if it was heeded",
             Keys::kAnyName, text_list("", "")),
       named("figures", "figure → JSON pointers to what one answer adds to it", Keys::kFigure,
             text_list("", "")),
       integer("first_id", "smallest id of random prompts", 0, 1e9),
       integer("last_id", "largest id of them", 0, 1e9)});
}

Field stores() {
  return list(
      "stores", "where compiled and learned things are kept",
      object("", "one store",
             {required(name("name", "what a scenario's cache calls it")),
              text("variable", "environment variable that moves it"),
              required(text("folder", "where it is by default; ~ and $NAME are filled in")),
              name("below", "the store in whose folder it lies by default"),
              required(choice("holds", "what it keeps",
                              {"compiled", "tuned", "plans", "models", "bytecode", "downloads"})),
              text_list("set", "NAME=VALUE that cold needs besides"),
              text_list("ignore", "globs of files in it that are no compilations")}));
}

Field switches(std::string_view key, std::string_view meaning) {
  return object(key, meaning,
                {text_list("argv", "arguments"),
                 named("env", "environment", Keys::kEnvironment, element(Type::kText)),
                 text("source", "where that is public")});
}

Field spans() {
  std::vector<std::string_view> names(trace::phases().begin(), trace::phases().end());
  return object("spans", "how it exports spans of its start, for --probe spans",
                {text_list("argv", "arguments; {endpoint} is where they go"),
                 named("env", "environment besides OpenTelemetry's own", Keys::kEnvironment,
                       element(Type::kText)),
                 named("phases", "name of a span → the phase that it is", Keys::kAnyName,
                       choice("", "", std::move(names))),
                 text("pid", "attribute of the resource that holds the process id"),
                 text("process", "attribute of the resource that names the process"),
                 text("source", "where that is public")});
}

Field processes() {
  return object("processes", "what it starts and how that ends",
                {required(text("tree", "front end → core → workers")),
                 text_list("workers", "globs over titles of processes that hold a GPU"),
                 required(text("failed_start", "its exit code then, and what that hides")),
                 required(text("on_sigterm", "what ends, what stays")),
                 seconds("grace", "SIGTERM to SIGKILL"),
                 seconds("settle", "what it leaves may vanish this long")});
}

Field builds() {
  return object(
      "builds", "how builds of it are had",
      {required(name("package", "its Python distribution")),
       text("wheels", "URL with {commit}: of a wheel's file, or of an index with that commit's"),
       text_list("python_path", "folders of its repository that Python looks into"),
       text_list("native_paths", "globs of its repository: what has to be compiled"),
       text_list("native_files", "globs of the installed package: what was compiled or generated"),
       required(text("source", "where that is public"))});
}

}  // namespace

const Field& server_preset_field() {
  static const Field field = [] {
    std::vector<std::string_view> phase_names(trace::phases().begin(), trace::phases().end());
    Field phases = required(
        list("phases", "the order in which it goes through phases", choice("", "", phase_names)));
    phases.min_items = 1;
    return object(
        "", "a server preset: what is known of one engine",
        {required(name("preset", "its name, that of the file")),
         required(text("engine", "its name")),
         text("about", "what to know"),
         required(text_list("source", "public places of the facts")),
         commands(),
         std::move(phases),
         required(health()),
         text("models", "path that lists what is served"),
         text_list("model_places", "where a model named by id lies once it is downloaded"),
         required(metrics("metrics", "its own counters")),
         metrics("more_metrics", "what stands elsewhere than metrics, and is read beside them"),
         metric_names(),
         required(completion()),
         required(name("log", "grammar of its log, in fixtures/servers/log")),
         stores(),
         required(switches("offline", "so that nothing is downloaded")),
         required(switches("determinism", "so that two runs do the same")),
         switches("weightless", "a start without weights"),
         spans(),
         required(processes()),
         builds(),
         text_list("stop", "run before its group is killed"),
         seconds("deadline", "of a phase"),
         seconds("silence", "without any output")});
  }();
  return field;
}

}  // namespace warmgate::target
