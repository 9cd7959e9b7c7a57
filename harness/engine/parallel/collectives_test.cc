#include "harness/engine/parallel/collectives.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "harness/engine/parallel/rank_processes.h"
#include "harness/trace/wire.h"

namespace warmgate::engine {
namespace {

using test::Body;
using test::make_memory;
using test::Outcome;
using test::run_ranks;
using test::same;
using test::sleep_ms;

TEST(LocalCollectives, NumbersPerCommunicator) {
  const auto local = make_local_collectives();
  EXPECT_EQ(local->last_seq("tp"), -1);
  EXPECT_EQ(local->all_reduce("tp", 8), 0);
  EXPECT_EQ(local->barrier("world"), 0);
  EXPECT_EQ(local->all_gather("tp", 8), 1);
  EXPECT_EQ(local->all_min("world", -5), -5);
  EXPECT_EQ(local->last_seq("world"), 1);
  EXPECT_EQ(local->world(), 1);
}

class SharedCollectives : public ::testing::TestWithParam<int> {};

TEST_P(SharedCollectives, AllRanksMeet) {
  const int world = GetParam();
  const auto outcomes = run_ranks(world, 20'000, same(world, [](Collectives& c) {
                                    for (int i = 0; i < 200; ++i) {
                                      if (c.all_reduce("tp", 64) != i) return std::string("seq");
                                      if (i % 7 == 0) c.barrier("world");
                                    }
                                    return std::to_string(c.all_min("world", 100 - c.rank()));
                                  }));
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.code, 0) << outcome.said;
    EXPECT_EQ(outcome.said, std::to_string(100 - (world - 1)));
  }
}
INSTANTIATE_TEST_SUITE_P(Worlds, SharedCollectives, ::testing::Values(1, 2, 8));

TEST(SharedCollectivesFailure, DifferentKindsNameBothRanksAndOperations) {
  auto bodies = same(3, [](Collectives& c) {
    c.barrier("world");
    c.all_reduce("tp", 64);
    return std::string();
  });
  bodies[2] = [](Collectives& c) {
    c.barrier("world");
    c.all_gather("tp", 32);
    return std::string();
  };
  for (const Outcome& outcome : run_ranks(3, 20'000, bodies)) {
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.said,
              "mismatch: ranks disagree at their collective number 2: rank 0 entered all_reduce of "
              "64 bytes on 'tp' (sequence number 0), rank 2 entered all_gather of 32 bytes on 'tp' "
              "(sequence number 0)");
  }
}

TEST(SharedCollectivesFailure, DifferentBytesCommunicatorsAndOrders) {
  const std::vector<std::pair<Body, Body>> pairs = {
      {[](Collectives& c) { return c.all_reduce("tp", 64), std::string(); },
       [](Collectives& c) { return c.all_reduce("tp", 65), std::string(); }},
      {[](Collectives& c) { return c.all_reduce("tp", 64), std::string(); },
       [](Collectives& c) { return c.all_reduce("pp", 64), std::string(); }},
      {[](Collectives& c) { return c.barrier("a"), c.barrier("b"), std::string(); },
       [](Collectives& c) { return c.barrier("b"), c.barrier("a"), std::string(); }}};
  for (const auto& [first, second] : pairs) {
    for (const Outcome& outcome : run_ranks(2, 20'000, {first, second})) {
      EXPECT_EQ(outcome.code, 1);
      EXPECT_EQ(outcome.said.rfind("mismatch: ", 0), 0u) << outcome.said;
    }
  }
}

TEST(SharedCollectivesFailure, LongCommunicatorNamesAreToldApart) {
  const std::string name(100, 'c');
  const Body a = [&](Collectives& c) { return c.barrier(name + "1"), std::string(); };
  const Body b = [&](Collectives& c) { return c.barrier(name + "2"), std::string(); };
  for (const Outcome& outcome : run_ranks(2, 20'000, {a, b})) EXPECT_EQ(outcome.code, 1);
  for (const Outcome& outcome : run_ranks(2, 20'000, {a, a})) EXPECT_EQ(outcome.code, 0);
}

TEST(SharedCollectivesFailure, AbandonWakesTheOthersWithRankAndReason) {
  const std::int64_t begin = trace::now_ns();
  auto bodies = same(4, [](Collectives& c) { return c.all_reduce("tp", 64), std::string(); });
  bodies[1] = [](Collectives& c) {
    c.abandon("in profile: no topk_indices_buffer");
    sleep_ms(300);  // alive all the while: the others go by what was said
    return std::string();
  };
  const auto outcomes = run_ranks(4, 20'000, bodies);
  EXPECT_LT(trace::now_ns() - begin, 5'000'000'000);
  for (const int rank : {0, 2, 3}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.said.rfind(
                  "peer_failed: rank 1 failed: in profile: no topk_indices_buffer; rank", 0),
              0u)
        << outcome.said;
  }
}

TEST(SharedCollectivesFailure, TheFirstFailureIsTheOneThatIsNamed) {
  auto bodies = same(3, [](Collectives& c) { return c.barrier("world"), std::string(); });
  bodies[0] = [](Collectives& c) {
    c.abandon("first");
    return std::string();
  };
  bodies[2] = [](Collectives& c) {
    sleep_ms(200);
    c.abandon("second");
    sleep_ms(200);
    c.barrier("world");
    return std::string();
  };
  const auto outcomes = run_ranks(3, 20'000, bodies);
  EXPECT_NE(outcomes[1].said.find("rank 0 failed: first"), std::string::npos) << outcomes[1].said;
  EXPECT_NE(outcomes[2].said.find("rank 0 failed: first"), std::string::npos) << outcomes[2].said;
}

TEST(SharedCollectivesFailure, AKilledPeerIsNoticedLongBeforeTheDeadline) {
  auto bodies = same(3, [](Collectives& c) {
    c.barrier("world");
    const std::int64_t begin = trace::now_ns();
    try {
      c.all_reduce("tp", 64);
    } catch (const CollectiveError& error) {
      if (trace::now_ns() - begin > 2'000'000'000) return std::string("slow");
      throw;
    }
    return std::string("no error");
  });
  bodies[1] = [](Collectives& c) {
    c.barrier("world");
    ::raise(SIGKILL);
    return std::string();
  };
  // Nobody reaps it while the others wait: a zombie is dead enough.
  const auto outcomes = run_ranks(3, 60'000, bodies);
  EXPECT_EQ(outcomes[1].signal, SIGKILL);
  for (const std::size_t rank : {0u, 2u}) {
    EXPECT_EQ(outcomes[rank].code, 1);
    EXPECT_EQ(
        outcomes[rank].said.rfind("peer_failed: rank 1 failed: it died after 1 collectives;", 0),
        0u)
        << outcomes[rank].said;
  }
}

TEST(SharedCollectivesFailure, APeerThatEndedIsNoticed) {
  auto bodies = same(2, [](Collectives& c) {
    c.barrier("world");
    c.barrier("world");
    return std::string();
  });
  bodies[1] = [](Collectives& c) { return c.barrier("world"), std::string(); };
  const auto outcomes = run_ranks(2, 60'000, bodies);
  EXPECT_EQ(outcomes[1].code, 0) << outcomes[1].said;
  EXPECT_EQ(outcomes[0].said.rfind("peer_failed: rank 1 failed: it ended after 1 collectives", 0),
            0u)
      << outcomes[0].said;
}

TEST(SharedCollectivesFailure, TheDeadlineNamesWhoDidNotCome) {
  auto bodies = same(3, [](Collectives& c) {
    c.barrier("world");
    c.barrier("world");
    return std::string();
  });
  bodies[2] = [](Collectives& c) {
    c.barrier("world");
    sleep_ms(1500);
    c.barrier("world");
    return std::string();
  };
  const auto outcomes = run_ranks(3, 300, bodies);
  EXPECT_EQ(outcomes[0].code, 1);
  // Whichever of the two gives up first, the other hears of it or gives up too.
  for (const std::size_t rank : {0u, 1u}) {
    EXPECT_NE(outcomes[rank].said.find("missing: rank 2 (1 collectives so far)"), std::string::npos)
        << outcomes[rank].said;
  }
  EXPECT_EQ(outcomes[2].said.rfind("peer_failed: rank ", 0), 0u) << outcomes[2].said;
}

TEST(SharedCollectivesFailure, ARankThatNeverCame) {
  const auto outcomes =
      run_ranks(2, 200, {[](Collectives& c) { return c.barrier("world"), std::string(); }});
  EXPECT_EQ(outcomes[0].code, 1);
  EXPECT_NE(outcomes[0].said.find("missing: rank 1 (never seen)"), std::string::npos)
      << outcomes[0].said;
}

TEST(SharedCollectivesFailure, ALatePeerWithinTheDeadlineIsFine) {
  auto bodies = same(2, [](Collectives& c) { return c.barrier("world"), std::string(); });
  bodies[1] = [](Collectives& c) { return sleep_ms(400), c.barrier("world"), std::string(); };
  for (const Outcome& outcome : run_ranks(2, 20'000, bodies)) EXPECT_EQ(outcome.code, 0);
}

TEST(SharedCollectivesFailure, WaitingCallsTheIdleFunction) {
  auto bodies = same(2, [](Collectives& c) {
    int calls = 0;
    c.on_wait([&] { ++calls; });
    c.barrier("world");
    return std::to_string(calls);
  });
  bodies[1] = [](Collectives& c) { return sleep_ms(600), c.barrier("world"), std::string(); };
  EXPECT_GE(std::stoi(run_ranks(2, 20'000, bodies)[0].said), 2);
}

// The harness makes the memory and may not include this folder: its test has the same figures.
TEST(SharedCollectivesSetUp, SizesThatTheHarnessKnowsToo) {
  EXPECT_EQ(collectives_bytes(1), 532'480);
  EXPECT_EQ(collectives_bytes(2), 1'060'864);
  EXPECT_EQ(collectives_bytes(8), 4'231'168);
}

TEST(SharedCollectivesSetUp, GarbageDescriptorsAreRefused) {
  const auto attempt = [](int fd, int rank, int world) -> std::string {
    try {
      make_shared_collectives(fd, rank, world, 100);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_NE(attempt(9999, 0, 2).find("Bad file descriptor"), std::string::npos);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  EXPECT_NE(attempt(null, 0, 2).find("no memfd"), std::string::npos);
  ::close(null);
  const int small = make_memory(1);
  EXPECT_NE(attempt(small, 0, 2).find("532480 bytes, 2 ranks need 1060864"), std::string::npos);
  EXPECT_NE(attempt(small, 1, 1).find("rank 1 of 1"), std::string::npos);
  EXPECT_NE(attempt(small, -1, 1).find("rank -1"), std::string::npos);
  EXPECT_EQ(attempt(small, 0, 1), "taken");
  // It left: the memory is used up, whoever comes again has lost count.
  EXPECT_NE(attempt(small, 0, 1).find("there already"), std::string::npos);
  ::close(small);
  const int garbage = make_memory(2);
  const char text[] = "something else entirely";
  EXPECT_GT(::pwrite(garbage, text, sizeof text, 0), 0);
  EXPECT_NE(attempt(garbage, 0, 2).find("stamp"), std::string::npos);
  ::close(garbage);
  char path[] = "/tmp/warmgate-collectives-XXXXXX";
  const int file = ::mkstemp(path);
  ::unlink(path);
  EXPECT_EQ(::ftruncate(file, collectives_bytes(2)), 0);
  const std::string on_disk = attempt(file, 0, 2);
  EXPECT_TRUE(on_disk.find("no memfd") != std::string::npos || on_disk == "taken") << on_disk;
  ::close(file);
}

}  // namespace
}  // namespace warmgate::engine
