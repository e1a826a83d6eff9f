#include "proxy.h"

#include <algorithm>
#include <thread>

namespace holdfast::proxy {
namespace {

/// Of one worker; a pipe holds up to 1 MiB while its sink is slow.
constexpr std::size_t kMostPipes = 64;
constexpr auto kPauseEventInterval = std::chrono::seconds(5);

std::size_t worker_count(std::size_t wanted) {
  return wanted > 0 ? wanted : std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 8);
}

}  // namespace

Proxy::Proxy(const Settings& settings, EventSink sink)
    : sink_(std::move(sink)),
      shared_{settings, Limits(settings.max_connections), [this](Event event) { emit(std::move(event)); }},
      table_(worker_count(settings.threads)) {
  const std::size_t workers = worker_count(settings.threads);
  const std::size_t pipes = std::clamp<std::size_t>(pipe_budget() / workers, 1, kMostPipes);
  for (std::size_t i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>(i, pipes, shared_));
  try {
    for (const auto& worker : workers_) worker->start();
  } catch (...) {
    begin_stop(std::chrono::milliseconds(0), nullptr);
    join();
    throw;
  }
}

Proxy::~Proxy() {
  begin_stop(std::chrono::milliseconds(0), nullptr);
  join();
}

std::vector<ListenResult> Proxy::apply(const TableDelta& delta, std::function<void()> taken) {
  ControlTable::Applied applied = table_.apply(delta);
  shared_.limits.refresh(table_.listening());
  const auto countdown = std::make_shared<Countdown>(workers_.size(), std::move(taken));
  for (const auto& worker : workers_) worker->take(applied.updates, countdown);
  return std::move(applied.results);
}

ProxyInfo Proxy::info() const noexcept { return {workers_.size(), listener_budget(), table_.listening(), shared_.limits.open(), shared_.limits.most()}; }

void Proxy::begin_stop(std::chrono::milliseconds grace, std::function<void()> ended, bool handed_over) {
  const auto countdown = stopping_ ? nullptr : std::make_shared<Countdown>(workers_.size(), std::move(ended));
  stopping_ = true;
  table_.close_all();
  for (const auto& worker : workers_) worker->begin_stop(grace, countdown, handed_over);
}

void Proxy::join() noexcept {
  for (const auto& worker : workers_) worker->join();
}

/// When descriptors run out, every worker says so ten times a second.
void Proxy::emit(Event event) {
  if (std::holds_alternative<AcceptPaused>(event)) {
    const std::int64_t now = net::Clock::now().time_since_epoch().count();
    std::int64_t quiet_until = quiet_until_.load(std::memory_order_relaxed);
    const std::int64_t next = now + net::Clock::duration(kPauseEventInterval).count();
    if (now < quiet_until || !quiet_until_.compare_exchange_strong(quiet_until, next)) return;
  }
  sink_(std::move(event));
}

}  // namespace holdfast::proxy
