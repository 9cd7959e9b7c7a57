#include "harness/target/server/census.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "harness/target/server/compilers.h"
#include "harness/target/server/late_kernel.h"
#include "harness/target/server/store_watch.h"
#include "harness/target/server/tree.h"
#include "harness/trace/wire.h"

namespace warmgate::target {
namespace {

namespace fs = std::filesystem;

constexpr double kLongest = 2;  // seconds between two looks, however dear they are
// The kernel stamps files with a clock that ticks every 1 to 10 ms.
constexpr std::int64_t kFileClock = 10'000'000;

constexpr std::size_t kMaxEmpty = 1000;
constexpr std::size_t kMostUnnamed = 1000;
constexpr std::size_t kMostEarly = 20000;

std::int64_t clock_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

// A kernel's file that appeared late, before Triton had written which kernel it is.
struct Unnamed {
  std::string path;
  std::int64_t t_ns = 0;
};

struct Watched {
  Watched(const PreparedStore& s, fs::path root, std::vector<fs::path> skip, std::size_t most,
          bool wrong)
      : store(s), watch(std::move(root), std::move(skip), most), elsewhere(wrong) {}
  const PreparedStore& store;
  StoreWatch watch;
  bool elsewhere;               // where the store must not be
  std::int64_t looked_ns = 0;   // when the last look began
  std::set<std::string> said;   // kernels with their folder
  std::uint64_t files = 0;      // new ones: outside, or after ready where nothing is compiled
  std::set<std::string> early;  // new ones, or old ones made anew, before ready
  std::string example;
  std::vector<Unnamed> unnamed;
  std::vector<std::string> empty;  // of a store of downloads: files without contents so far
};

}  // namespace

struct Census::Impl {
  Impl(CensusOptions o, std::function<void(trace::Event)> e)
      : options(std::move(o)), emit(std::move(e)), compilers(options.marker) {
    std::vector<fs::path> all;
    for (const PreparedStore& s : options.stores) {
      if (!s.folder.empty()) all.push_back(s.folder);
    }
    std::set<fs::path> roots;
    const auto add = [&](const PreparedStore& s, const fs::path& root, bool elsewhere) {
      if (root.empty() || !root.is_absolute() || !roots.insert(root).second) return;
      // A store inside another one is watched for itself.
      std::vector<fs::path> skip;
      for (const PreparedStore& other : options.stores) {
        for (const fs::path& each : {other.folder, other.elsewhere})
          if (!each.empty() && each != root) skip.push_back(each);
      }
      watched.push_back(std::make_unique<Watched>(s, root, skip, options.max_files, elsewhere));
    };
    for (const PreparedStore& s : options.stores) {
      if (s.name == "page_cache") continue;
      add(s, s.folder, false);
      // Where one store must not be, another may have been told to be.
      if (std::find(all.begin(), all.end(), s.elsewhere) == all.end()) add(s, s.elsewhere, true);
    }
  }

  void begin() {
    for (auto& each : watched) {
      each->looked_ns = trace::now_ns();
      each->watch.begin();
    }
    compilers.begin();
  }

  trace::Event event(const char* ev, std::int64_t t_ns) const {
    trace::Event e;
    e.ev = ev;
    e.t_ns = t_ns;
    e.src = "census";
    e.source = "census";
    return e;
  }

  void compile(std::int64_t t_ns, std::int64_t res_ns, std::optional<int> rank,
               const std::string& kernel, const std::string& key, const std::string& arch,
               const std::vector<std::pair<const char*, std::string>>& more) {
    if (events++ >= options.max_events) {
      ++result.dropped;
      return;
    }
    trace::Event e = event("compile", t_ns);
    e.rank = rank;
    e.res_ns = res_ns;
    e.body.add("kernel", std::string_view(kernel));
    e.body.add("key", std::string_view(key));
    e.body.add("arch", std::string_view(arch));
    e.body.add("source", std::string_view("compiler"));
    e.body.add("status", std::string_view("seen"));
    e.body.add("phase", std::string_view("serve"));
    for (const auto& [name, value] : more) e.body.add(name, std::string_view(value));
    emit(std::move(e));
  }

  void look_at_stores() {
    const std::int64_t ready = ready_ns.load();
    for (auto& each : watched) {
      Watched& w = *each;
      const std::int64_t began = trace::now_ns();
      const std::vector<Unnamed> waited = std::exchange(w.unnamed, {});
      // Wall clock to monotonic, anew each time: the wall clock may be set.
      const std::int64_t offset = clock_ns(CLOCK_REALTIME) - trace::now_ns();
      w.watch.look([&](const FreshFile& file) {
        if (ignored(w.store.ignore, file.path)) return;
        const std::int64_t at = file.changed_ns - offset;
        if (w.elsewhere) {
          count(w, file.path);
          return;
        }
        if (w.store.downloads) {
          // Links and markers come even where nothing is fetched; a file may still be filled.
          if (file.bytes > 0) {
            count(w, file.path);
          } else if (w.empty.size() < kMaxEmpty) {
            w.empty.push_back(file.path);
          }
          return;
        }
        const bool late =
            ready != 0 && ((file.after_look && w.looked_ns > ready) || at > ready + kFileClock);
        if (late) {
          appeared(w, file, std::clamp(at, ready, trace::now_ns()));
        } else if (file.after_look && w.early.size() < kMostEarly) {
          w.early.insert(file.path);
        }
      });
      w.looked_ns = began;
      for (const Unnamed& file : waited) named(w, file.path, file.t_ns);
    }
  }

  static void count(Watched& w, const std::string& path) {
    if (w.files++ == 0) w.example = path;
  }

  void appeared(Watched& w, const FreshFile& file, std::int64_t t_ns) {
    count(w, file.path);
    if (!w.store.compiled) return;
    const std::string side = side_file_of(file.path);
    std::error_code ec;
    // It is written last; the next look sees it.
    if (!side.empty() && w.unnamed.size() < kMostUnnamed &&
        !fs::exists(fs::symlink_status(w.watch.root() / side, ec))) {
      w.unnamed.push_back({file.path, t_ns});
    } else {
      named(w, file.path, t_ns);
    }
  }

  void named(Watched& w, const std::string& path, std::int64_t t_ns) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash);
    if (!w.said.insert(folder + "/" + kernel_of(path)).second) return;
    ++result.compiled_files;
    const LateKernel kernel = late_kernel(w.watch.root(), path);
    compile(t_ns, kFileClock, named_rank(path), kernel.name, w.store.name + ":" + kernel.name,
            kernel.arch, {{"store", w.store.name}, {"path", (w.watch.root() / path).string()}});
  }

  void look_at_processes() {
    std::vector<CompilerRun> runs;
    {
      const std::lock_guard lock(mutex);
      runs = compilers.look();
    }
    const std::int64_t ready = ready_ns.load();
    for (const CompilerRun& run : runs) {
      // Who was not there at the look that ready() took began after it, whatever the ticks say.
      const bool late = ready != 0 && (looked_at_ready || run.started_ns > ready + kFileClock);
      if (!late) {
        ++result.compilers_before;
        continue;
      }
      ++result.compilers;
      const std::string kernel = run.name.empty() ? run.program : run.name;
      compile(std::max(run.started_ns, ready), kFileClock, run.rank, kernel,
              run.program + ":" + kernel, run.arch,
              {{"program", run.program}, {"pid", std::to_string(run.pid)}});
    }
  }

  // As many files as it held were made while it started: what was there was of no use.
  void rebuilt(const Watched& w) {
    const PreparedStore& s = w.store;
    constexpr std::uint64_t kFewest = 4;  // fewer may well be written at every start
    const bool warm = !s.asked.empty() && s.asked != "cold" && s.files >= kFewest && s.counted_all;
    if (w.elsewhere || !s.compiled || !warm || w.early.size() < s.files) return;
    // Most are written under another name first.
    std::int64_t made = 0;
    std::string example;
    for (const std::string& path : w.early) {
      std::error_code ec;
      if (!fs::exists(fs::symlink_status(w.watch.root() / path, ec))) continue;
      if (made++ == 0) example = path;
    }
    if (std::cmp_less(made, s.files)) return;
    trace::Event e = event("store", trace::now_ns());
    e.body.add("store", std::string_view(s.name));
    e.body.add("path", std::string_view(w.watch.root().native()));
    e.body.add("status", std::string_view("rebuilt"));
    e.body.add("files", made);
    e.body.add("held", static_cast<std::int64_t>(s.files));
    e.body.add("example", std::string_view(example));
    emit(std::move(e));
  }

  void end() {
    for (auto& each : watched) {
      Watched& w = *each;
      rebuilt(w);
      for (const Unnamed& file : std::exchange(w.unnamed, {})) named(w, file.path, file.t_ns);
      for (const std::string& path : w.empty) {
        std::error_code ec;
        const fs::path full = w.watch.root() / path;
        if (fs::is_regular_file(fs::symlink_status(full, ec)) && fs::file_size(full, ec) > 0 && !ec)
          count(w, path);
      }
      if (w.watch.cut()) result.cut.push_back(w.watch.root().string());
      if (w.elsewhere) result.outside += w.files;
      if (w.files == 0 || (!w.elsewhere && w.store.compiled)) continue;
      trace::Event e = event("store", trace::now_ns());
      e.body.add("store", std::string_view(w.store.name));
      e.body.add("path", std::string_view(w.watch.root().native()));
      e.body.add("status", std::string_view(w.elsewhere         ? "outside"
                                            : w.store.downloads ? "downloaded"
                                                                : "grew"));
      e.body.add("files", static_cast<std::int64_t>(w.files));
      e.body.add("example", std::string_view(w.example));
      emit(std::move(e));
    }
  }

  // A look costs what it costs; the pause after it keeps the share.
  void run() {
    std::int64_t stores_due = 0, processes_due = 0;
    std::unique_lock lock(thread_mutex);
    while (!stopping) {
      lock.unlock();
      const auto timed = [this](std::int64_t& due, auto&& look) {
        if (trace::now_ns() < due) return;
        const std::int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        look();
        const double cost = static_cast<double>(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
        cpu_s += cost;
        ++result.polls;
        // Two sorts of looks share what is allowed.
        const double pause = std::clamp(2 * cost / std::max(options.max_share, 0.001),
                                        options.interval_s, std::max(kLongest, options.interval_s));
        due = trace::now_ns() + static_cast<std::int64_t>(pause * 1e9);
      };
      timed(processes_due, [this] {
        const std::lock_guard one(look_mutex);
        look_at_processes();
      });
      timed(stores_due, [this] {
        const std::lock_guard one(look_mutex);
        look_at_stores();
      });
      lock.lock();
      const std::int64_t left = std::min(stores_due, processes_due) - trace::now_ns();
      if (!stopping && left > 0) wake.wait_for(lock, std::chrono::nanoseconds(left));
    }
  }

  CensusOptions options;
  std::function<void(trace::Event)> emit;
  std::vector<std::unique_ptr<Watched>> watched;
  std::mutex look_mutex;         // one look at a time
  bool looked_at_ready = false;  // under look_mutex
  std::mutex mutex;              // of compilers: roots are added from other threads
  CompilerWatch compilers;
  std::atomic<std::int64_t> ready_ns{0};
  std::size_t events = 0;
  CensusResult result;
  double cpu_s = 0;
  std::thread thread;
  std::mutex thread_mutex;
  std::condition_variable wake;
  bool stopping = false, started = false;
};

Census::Census(CensusOptions options, std::function<void(trace::Event)> emit)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(emit))) {}

Census::~Census() { stop(); }

void Census::add_root(pid_t pid, int rank) {
  const std::lock_guard lock(impl_->mutex);
  impl_->compilers.add_root(pid, rank);
}

void Census::start() {
  if (impl_->started) return;
  impl_->started = true;
  impl_->begin();
  impl_->thread = std::thread([this] { impl_->run(); });
}

void Census::ready(std::int64_t t_ns) {
  std::int64_t none = 0;
  const std::lock_guard one(impl_->look_mutex);
  if (!impl_->ready_ns.compare_exchange_strong(none, t_ns) || !impl_->thread.joinable()) return;
  impl_->look_at_processes();
  impl_->look_at_stores();
  impl_->looked_at_ready = true;
}

CensusResult Census::stop() {
  if (impl_->thread.joinable()) {
    {
      const std::lock_guard lock(impl_->thread_mutex);
      impl_->stopping = true;
    }
    impl_->wake.notify_all();
    impl_->thread.join();
    impl_->look_at_processes();
    impl_->look_at_stores();
    impl_->result.polls += 2;
    impl_->end();
    impl_->result.cpu_s = impl_->cpu_s;
  }
  return impl_->result;
}

}  // namespace warmgate::target
