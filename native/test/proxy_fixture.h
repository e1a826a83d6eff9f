#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>

#include "loopback.h"
#include "proxy.h"

namespace holdfast::testing {

using namespace std::chrono_literals;

/// Two workers, and what they said.
class ProxyTest : public ::testing::Test {
 protected:
  explicit ProxyTest(const proxy::Settings& changed = {}) : settings_(changed) {}

  proxy::Settings settings() const {
    proxy::Settings two = settings_;
    two.threads = 2;
    return two;
  }

  static proxy::ListenerConfig config(proxy::ListenerId id, const std::vector<std::uint16_t>& ports,
                                      std::chrono::milliseconds drain = 10s) {
    proxy::ListenerConfig made;
    made.id = id;
    made.address = SocketAddress::loopback(0);
    made.algorithm = proxy::Algorithm::round_robin;
    made.drain = drain;
    made.connect_timeout = 2s;
    for (const std::uint16_t port : ports) made.endpoints.push_back({SocketAddress::loopback(port), 1, 0});
    return made;
  }

  /// Returns when every worker has taken it.
  std::vector<proxy::ListenResult> apply(const proxy::TableDelta& delta) {
    const auto taken = std::make_shared<std::promise<void>>();
    auto results = proxy_.apply(delta, [taken] { taken->set_value(); });
    taken->get_future().wait();
    return results;
  }
  std::uint16_t listen(const proxy::ListenerConfig& config) { return apply({{}, {config}}).at(0).port; }
  void stop(std::chrono::milliseconds grace) {
    std::promise<void> ended;
    proxy_.begin_stop(grace, [&] { ended.set_value(); });
    ended.get_future().wait();
    proxy_.join();
  }

  proxy::ListenerStats stats(proxy::ListenerId id) const { return proxy_.table().stats(id).value(); }
  std::uint64_t ended(proxy::ListenerId id, proxy::Outcome outcome) const { return stats(id).ended[static_cast<std::size_t>(outcome)]; }
  /// What was counted is seen soon after, not at once: a worker counts after the peer has noticed.
  static ::testing::AssertionResult eventually(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return ::testing::AssertionFailure() << "not within 10 s";
      std::this_thread::sleep_for(1ms);
    }
    return ::testing::AssertionSuccess();
  }
  std::vector<proxy::Drained> drained() {
    const std::lock_guard lock(mutex_);
    return drained_;
  }

  std::vector<proxy::Ejected> ejected() {
    const std::lock_guard lock(mutex_);
    return ejected_;
  }

  int pauses() {
    const std::lock_guard lock(mutex_);
    return pauses_;
  }

  const proxy::Settings settings_;
  std::mutex mutex_;
  int pauses_ = 0;
  std::vector<proxy::Drained> drained_;
  std::vector<proxy::Ejected> ejected_;
  proxy::Proxy proxy_{settings(), [this](proxy::Event event) {
                        const std::lock_guard lock(mutex_);
                        if (const auto* drained = std::get_if<proxy::Drained>(&event)) drained_.push_back(*drained);
                        else if (const auto* ejected = std::get_if<proxy::Ejected>(&event)) ejected_.push_back(*ejected);
                        else ++pauses_;
                      }};
};

}  // namespace holdfast::testing
