#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <functional>
#include <thread>

namespace holdfast::test {

/// On a thread with a network of its own: the machine's rules and connections are never touched.
inline void in_namespace(const std::function<void()>& body) {
  bool made = false;
  std::thread([&] {
    made = ::unshare(CLONE_NEWNET) == 0;
    if (made) body();
  }).join();
  if (!made) GTEST_SKIP() << "needs root, for a network namespace";
}

}  // namespace holdfast::test
