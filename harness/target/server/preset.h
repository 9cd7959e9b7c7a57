// What is known of one engine's server, as data: fixtures/servers/NAME.yaml. No C++ knows an
// engine by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace warmgate::target {

/// How it is started. {model} {host} {port} are filled in.
struct CommandForm {
  std::string from, until;  // versions [from, until); "" = open
  std::vector<std::string> argv;
  std::string source;  // where that is known from
};

/// An endpoint that says something about readiness, and what that is worth.
struct HealthProbe {
  std::string path;
  int ok = 200;
  /// What a first `ok` proves: process (the front end runs) | loaded (the engine is up) | works (a
  /// token was made).
  std::string proves;
  std::string means;       // one sentence: the true meaning
  bool while_hung = true;  // an engine that hangs goes on answering ok
};

struct MetricsEndpoint {
  std::string path;
  std::string kind;                // prometheus | json | none
  std::vector<std::string> needs;  // arguments without which it does not exist
};

/// One of its metrics under our name. `add` figures of several labels are summed.
struct MetricName {
  std::string theirs;  // Prometheus name as exposed, or a JSON pointer
  std::string ours;    // name of a figure (trace/vocabulary)
  std::string kind;    // counter | gauge | histogram | label
  std::string label;   // kind label: the label of the metric that holds the value
};

/// How work is asked for. Bodies are JSON in which a text that is exactly {prompt} {model}
/// {output_tokens} {seed} {adapter} {grammar} is replaced by the value, of its own type.
struct Completion {
  std::string path;
  std::string prompt = "ids";  // ids: a list of token ids | text: words of one token each
  nlohmann::json body;         // of every class
  std::map<std::string, nlohmann::json> classes;  // class → laid over body (RFC 7396)
  std::string stream = "sse";                     // sse | json_lines | none
  /// What ends a stream: a payload ([DONE]), or a JSON pointer to something true or a text (/stop);
  /// "" = the end of the body.
  std::string done;
  std::vector<std::string> text;    // JSON pointers, tried in order: the new text of a chunk
  bool text_so_far = false;         // each chunk repeats the text from its beginning
  std::vector<std::string> tokens;  // JSON pointers: tokens produced so far, where it says so
  std::vector<std::string> prompt_tokens;  // JSON pointers: length of the prompt as it counted
  std::vector<std::string> error;          // JSON pointers that hold an error's text
  /// Class → JSON pointers of which one is in an answer that heeded it (logprobs); a server that
  /// does not know a field may leave it out in silence.
  std::map<std::string, std::vector<std::string>> shows;
  /// Figure → JSON pointers to what one answer adds to it (llama.cpp: draft_tokens, timings).
  std::map<std::string, std::vector<std::string>> figures;
  std::int64_t first_id = 0, last_id = 0;  // prompt ids when the scenario names none
};

/// Where compiled or learned things are kept.
struct CacheStore {
  std::string name;      // engine, triton, inductor, flashinfer, deep_gemm …
  std::string variable;  // environment variable that moves it; "" = none
  /// Default place; ~, $NAME and ${NAME:-else} are expanded. Relative: inside `below`'s;
  /// one that lies inside the default place of `below` moves with it.
  std::string folder;
  std::string below;                // "" or the store inside whose folder it lies by default
  std::string holds;                // compiled | tuned | plans | models | bytecode | downloads
  std::vector<std::string> set;     // cold needs these too: NAME=VALUE, {folder} is filled in
  std::vector<std::string> ignore;  // globs of files that are no compilations (locks, logs)
};

struct Switches {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;
  std::string source;
};

struct ProcessFacts {
  std::string tree;                  // one line for a person: front end → core → workers
  std::vector<std::string> workers;  // globs over process titles of those that hold a GPU
  std::string failed_start;          // what its exit code is then, and what it hides
  std::string on_sigterm;            // unwinds, leaves children …
  double grace_s = 10;               // SIGTERM to SIGKILL
  double settle_s = 2;               // 30 where a GPU is given back late
};

/// How it exports spans of its start (OpenTelemetry), and what they stand for.
struct SpanFacts {
  std::vector<std::string> argv;              // besides the environment; {endpoint} is filled in
  std::map<std::string, std::string> env;     // the same
  std::map<std::string, std::string> phases;  // name of a span → phase of ours
  /// Attributes of the resource that hold the process's id and its name; "" = the conventions'.
  std::string pid, process;
  std::string source;
};

/// How builds of it are had: for variants that are a wheel of a commit, or a revision.
struct BuildFacts {
  std::string package;  // the Python distribution; "" = it is none
  std::string wheels;   // URL with {commit}: of a wheel's file, or of an index with that commit's
  std::vector<std::string> python_path;   // folders of its repository that Python looks into
  std::vector<std::string> native_paths;  // globs of its repository: what has to be compiled
  std::vector<std::string> native_files;  // globs of the installed package: what was
  std::string source;
};

struct ServerPreset {
  std::string name;    // of the file
  std::string engine;  // as reports call it
  std::string about;
  std::filesystem::path path;
  std::vector<CommandForm> commands;  // newest first; may be empty (then a command is required)
  std::vector<std::string> phases;    // in which order; repeats are allowed
  std::vector<HealthProbe> health;    // the first is the one to wait for
  std::string models;                 // lists what is served; "" = none
  /// Where a model named by id lies once it is downloaded; $NAME, ~ and {model} (with -- for /)
  /// are filled in. Empty: models are files.
  std::vector<std::string> model_places;
  MetricsEndpoint metrics, more_metrics;  // the second is read beside the first where there is one
  std::vector<MetricName> metric_names;
  Completion completion;
  std::string log;  // grammar: fixtures/servers/log/LOG.yaml
  std::vector<CacheStore> stores;
  Switches offline, determinism, weightless;
  SpanFacts spans;
  ProcessFacts processes;
  BuildFacts builds;
  std::vector<std::string> stop;
  double deadline_s = 600;  // of a phase
  double silence_s = 600;   // compilations are silent for minutes
  /// The form for a version ("" = the newest); null if there is none.
  const CommandForm* command_for(const std::string& version) const;
  const CacheStore* store(const std::string& name) const;
};

/// Folder of the presets below `fixtures` ("" = as the scenario language finds it).
std::filesystem::path presets_folder(const std::filesystem::path& fixtures = {});
/// Names of all presets there, sorted.
std::vector<std::string> preset_names(const std::filesystem::path& folder);
/// Throws scenario::ScenarioError with every problem (file:line:column, key path).
ServerPreset load_preset(const std::filesystem::path& file);
/// By name; an unknown one is a ScenarioError that says which there are.
ServerPreset find_preset(const std::string& name, const std::filesystem::path& folder);

/// a < b for dotted versions: 0.9 < 0.10, "" is never smaller.
bool older_version(const std::string& a, const std::string& b);

}  // namespace warmgate::target
