// A last word for the worst: a `fault` event when a fatal signal strikes.
#pragma once

namespace warmgate::engine {

/// From now on SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT write one `fault` line to `fd` (-1: no
/// line) and then end the process as if nobody had looked. Works on a stack of its own, so an
/// overflow of the usual one is told too. Only async-signal-safe calls are made.
void install_crash_handlers(int fd, int rank);
/// A literal; said in the line.
void set_crash_phase(const char* phase);

}  // namespace warmgate::engine
