#include "event_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <thread>

namespace holdfast::net {
namespace {

using std::chrono::milliseconds;

TEST(EventLoop, TimersRunInTheOrderOfTheirDeadlines) {
  EventLoop loop;
  std::string order;
  const auto now = Clock::now();
  loop.at(now + milliseconds(20), [&] { order += 'c', loop.stop(); });
  loop.at(now + milliseconds(5), [&] { order += 'a'; });
  loop.at(now + milliseconds(10), [&] { order += 'b'; });
  loop.run();
  EXPECT_EQ(order, "abc");
  EXPECT_GE(Clock::now() - now, milliseconds(20));
}

TEST(EventLoop, ACancelledTimerDoesNotRun) {
  EventLoop loop;
  bool ran = false;
  TimerId timer = loop.after(milliseconds(1), [&] { ran = true; });
  loop.cancel(timer);
  EXPECT_FALSE(timer);
  loop.after(milliseconds(10), [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(ran);
}

TEST(EventLoop, ATimerMayCancelAnotherThatIsDue) {
  EventLoop loop;
  std::string order;
  TimerId second;
  loop.after(milliseconds(0), [&] { order += 'a', loop.cancel(second); });
  second = loop.after(milliseconds(0), [&] { order += 'b'; });
  loop.after(milliseconds(5), [&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(order, "a");
}

TEST(EventLoop, TheMailboxKeepsItsOrder) {
  EventLoop loop;
  std::thread thread([&] { loop.run(); });
  std::vector<int> seen;
  for (int i = 0; i < 10'000; ++i) loop.post([&seen, i] { seen.push_back(i); });
  loop.post([&] { loop.stop(); });
  thread.join();
  ASSERT_EQ(seen.size(), 10'000U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(EventLoop, DeferredTasksRunEvenWhenItStops) {
  EventLoop loop;
  std::string order;
  loop.post([&] {
    loop.defer([&] { order += 'b', loop.defer([&] { order += 'c'; }); });
    loop.stop();
    order += 'a';
  });
  loop.run();
  EXPECT_EQ(order, "abc");
}

double thread_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

/// An idle loop that polls would take a whole core.
TEST(EventLoop, ABusyLoopDeliversAndAnIdleOneSleeps) {
  EventLoop loop(std::chrono::microseconds(500));
  int delivered = 0;
  double idle = 0;
  std::thread thread([&] { loop.run(); });
  for (int i = 0; i < 200; ++i) {
    loop.post([&] { ++delivered; });
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  std::this_thread::sleep_for(milliseconds(20));
  loop.post([&] { idle = thread_cpu_seconds(); });
  std::this_thread::sleep_for(milliseconds(300));
  loop.post([&] { idle = thread_cpu_seconds() - idle, loop.stop(); });
  thread.join();
  EXPECT_EQ(delivered, 200);
  EXPECT_LT(idle, 0.03);
}

}  // namespace
}  // namespace holdfast::net
