// warmgate: parses, hands over to one command, turns what it throws into an exit code.
#include <exception>

#include "harness/cli/commands.h"
#include "harness/cli/parse.h"
#include "harness/cli/problems_text.h"

int main(int argc, char** argv) {
  using namespace warmgate;
  cli::prepare_standard_streams();
  cli::Parsed parsed = cli::parse(argc, argv);
  if (!parsed.line) {
    cli::Console console(cli::ColourChoice::kAuto);
    console.out(parsed.out);
    console.err(parsed.err);
    return console.out_error().empty() ? parsed.exit_code : 4;
  }
  const cli::CommandLine& line = *parsed.line;
  cli::Console console(line.colour);
  // For git bisect anything from 1 to 127 but 125 is a judgement; trouble of ours has to stop it.
  const bool step = line.command == "step";
  try {
    return cli::dispatch(line, console);
  } catch (const scenario::ScenarioError& error) {
    console.err(cli::problems_text(error, console.err_style()));
    return step ? 128 : 2;
  } catch (const std::exception& error) {
    console.complain(error.what());
    return step ? 128 : 4;
  }
}
