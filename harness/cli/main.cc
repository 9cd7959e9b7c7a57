// warmgate: parses, hands over to one command, turns what it throws into an exit code.
#include <exception>

#include "harness/cli/commands.h"
#include "harness/cli/github.h"
#include "harness/cli/parse.h"
#include "harness/cli/problems_text.h"
#include "harness/target/environment.h"
#include "harness/target/mask.h"

extern char** environ;

namespace warmgate {
extern const char* const kRevision;  // of the tree it was built from; written by the build
}

int main(int argc, char** argv) {
  using namespace warmgate;
  target::set_revision(kRevision);
  cli::prepare_standard_streams();
  cli::Parsed parsed = cli::parse(argc, argv);
  std::vector<std::string> secrets = target::collect_secrets(environ);
  trace::find_argument_secrets({argv, argv + argc}, secrets);
  if (!parsed.line) {
    cli::Console console(cli::ColourChoice::kAuto);
    console.know(secrets);
    console.out(parsed.out);
    console.err(parsed.err);
    return console.out_error().empty() ? parsed.exit_code : 4;
  }
  const cli::CommandLine& line = *parsed.line;
  cli::Console console(line.colour);
  console.know(secrets);
  // For git bisect anything from 1 to 127 but 125 is a judgement; trouble of ours has to stop it.
  const bool step = line.command == "step";
  try {
    return cli::dispatch(line, console);
  } catch (const scenario::ScenarioError& error) {
    console.know(cli::secrets_near(error));
    console.err(cli::problems_text(error, console.err_style()));
    cli::tell_github(error, line, console);
    return step ? 128 : 2;
  } catch (const std::exception& error) {
    console.complain(error.what());
    cli::tell_github(error.what(), line, console);
    return step ? 128 : 4;
  }
}
