#include <sys/resource.h>

#include <ctime>

#include "proxy_fixture.h"

namespace holdfast::testing {
namespace {

/// Takes every descriptor that this process may still open.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = 400;
    ::setrlimit(RLIMIT_NOFILE, &low);
    for (int fd; (fd = ::dup(0)) >= 0;) taken_.emplace_back(fd);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  void give_back(std::size_t count) { taken_.resize(taken_.size() - count); }

 private:
  rlimit before_{};
  std::vector<UniqueFd> taken_;
};

double cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

bool echoes(int fd) { return send_all(fd, "a") && receive(fd, 1) == "a"; }

/// faults.md 18: accept spun at 100 % CPU when descriptors ran out.
TEST_F(ProxyTest, WaitsForDescriptorsWithoutSpinning) {
  Server server(echo);
  const std::uint16_t port = listen(config(1, {server.port()}));
  const UniqueFd old = connect_to(port);
  ASSERT_TRUE(echoes(old.get()));
  // The server waits in its next accept, for which it already has the descriptor.
  std::this_thread::sleep_for(50ms);
  std::vector<UniqueFd> waiting;
  for (int i = 0; i < 20; ++i) waiting.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    NoDescriptors none;
    const net::RawAddress to(SocketAddress::loopback(port));
    for (const UniqueFd& fd : waiting) ASSERT_EQ(::connect(fd.get(), to.data(), to.size()), 0);
    const double before = cpu_seconds();
    std::this_thread::sleep_for(500ms);
    EXPECT_LT(cpu_seconds() - before, 0.1);
    EXPECT_TRUE(echoes(old.get()));
    EXPECT_EQ(pauses(), 1);
    // One is enough to accept, not enough to dial: that client waits, too.
    none.give_back(1);
    std::this_thread::sleep_for(300ms);
    EXPECT_LE(stats(1).active, 2U);
    EXPECT_EQ(ended(1, proxy::Outcome::failed), 0U);
  }
  for (const UniqueFd& fd : waiting) EXPECT_TRUE(echoes(fd.get()));
  EXPECT_EQ(ended(1, proxy::Outcome::failed), 0U);
}

}  // namespace
}  // namespace holdfast::testing
