#include "budget.h"

#include <sys/resource.h>

#include <algorithm>

namespace holdfast::proxy {
namespace {

constexpr rlim_t kReserve = 1024;
/// Stands for "unlimited": fs.nr_open's default.
constexpr rlim_t kMostFiles = 1 << 20;
/// The part of what is left that pipes may take, and the part that is kept free for listeners to come. With 20,000 files: 18,976 are left,
/// 148 pipes take 296 of them, 296 wait for listeners, 9,192 connections have the rest.
constexpr rlim_t kShare = 64;
constexpr rlim_t kLeastPipes = 2;

rlim_t files_for_traffic() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t files = std::min(limit.rlim_cur, kMostFiles);
  return files - std::min(kReserve, files / 4);
}

}  // namespace

std::size_t listener_budget() noexcept { return files_for_traffic() * 2 / 3; }

std::size_t pipe_budget() noexcept { return std::max(kLeastPipes, files_for_traffic() / kShare / 2); }

std::uint64_t connection_budget(std::size_t listening) noexcept {
  const rlim_t files = files_for_traffic();
  const rlim_t kept = 2 * pipe_budget() + std::max<rlim_t>(listening, files / kShare);
  return files > kept ? (files - kept) / 2 : 0;
}

void Limits::refresh(std::size_t listening) noexcept {
  most_.store(fixed_ != 0 ? std::min(fixed_, connection_budget(listening)) : connection_budget(listening), std::memory_order_relaxed);
}

}  // namespace holdfast::proxy
