// The readiness clocks of one member that can be seen over the network: port, health, models. Each
// is polled until it strikes, every 50 ms.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "harness/target/companion.h"
#include "harness/target/server/client.h"
#include "harness/target/server/preset.h"

namespace warmgate::target {

struct ClockSpec {
  std::string member;
  int rank = 0;
  std::string host;
  int port = 0;
  HealthProbe health;  // path "" = none: the port is all there is
  std::string models;  // path; "" = none
};

class Clocks {
 public:
  static constexpr double kPoll_s = 0.05;

  /// `sink` and `cancel` outlive it.
  Clocks(ClockSpec spec, EventSink& sink, const CancelToken& cancel);
  ~Clocks();  // waits for the thread; cancel first
  Clocks(const Clocks&) = delete;
  Clocks& operator=(const Clocks&) = delete;

  void start();
  /// Blocks until health (or the port, where there is none) struck: true; or `cancel`: false. Then
  /// an `http` event with `when: never ready` says how often it was asked, and what came last.
  bool wait_ready();
  /// The first model that is served; "" if none is known `seconds` later.
  std::string wait_model(double seconds);
  std::int64_t ready_ns() const { return ready_ns_.load(); }
  /// Health asked once more, as an `http` event with `when`.
  void ask_again(const std::string& when);

 private:
  void run();
  bool port();
  bool health();
  bool models();
  void never_ready();
  void struck(const char* clock, std::int64_t t_ns);
  trace::Event http(const HttpAnswer& answer, const std::string& path, const char* clock) const;
  bool pause(double seconds) const;  // false: cancelled
  HttpAnswer ask(const std::string& path, double first_byte_s) const;

  ClockSpec spec_;
  EventSink& sink_;
  const CancelToken& cancel_;
  std::string last_health_, last_models_;  // what was answered, so that equal answers are said once
  HttpAnswer last_answer_;                 // of health
  std::int64_t tried_ = 0, asked_ = 0;     // connections to the port, questions to health
  std::string port_error_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ready_ = false, models_done_ = false, over_ = false;
  std::string model_;
  std::atomic<std::int64_t> ready_ns_{0};
  std::thread thread_;
};

}  // namespace warmgate::target
