#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "network_namespace.h"
#include "nft_socket.h"

namespace holdfast::nft {
namespace {

constexpr int kPlans = 1'000;

/// Plans of a few steps on a handful of names, so that some are right, and most of the others fail somewhere behind steps that would have worked.
class Plans {
 public:
  explicit Plans(unsigned seed) : random_(seed) {}

  Plan next() {
    Plan plan;
    if (one_in(2)) plan.push_back({"t", "", "", Table{}});
    for (std::size_t i = 1 + below(8); i > 0; --i) plan.push_back(step());
    return plan;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  bool one_in(std::size_t count) { return below(count) == 0; }
  std::string name(char letter) { return letter + std::to_string(below(3)); }

  Operation step() {
    switch (below(10)) {
      case 0: return {"t", name('c'), "", one_in(3) ? Chain{Hook{"filter", 1, static_cast<std::int32_t>(below(3))}} : Chain{}};
      case 1: return {"t", name('c'), "", Rule{{expression(), expression()}}};
      case 2: return {"t", "", name('s'), Set{one_in(2) ? std::uint32_t{NFT_SET_MAP} : 0, 19, 19, 4, {4}, one_in(4) ? 3U : 0U, 0}};
      case 3: case 4: return elements();
      case 5: return {"t", "", "", Counter{}, false, name('n')};
      case 6: return one_in(2) ? Operation{"t", name('c'), "", Flush{}} : Operation{"t", "", name('s'), Flush{}};
      case 7: return {"t", name('c'), "", Remove{one_in(2) ? below(60) : 0}};
      case 8: return one_in(2) ? Operation{"t", "", name('s'), Remove{}} : Operation{"t", "", "", Remove{}, false, name('n')};
      default: return one_in(5) ? Operation{"t", "", "", Remove{}} : elements();
    }
  }

  Operation elements() {
    const bool data = one_in(2);
    Elements some{4, data ? 4U : 0U, {}, {}};
    for (std::size_t i = below(5); i > 0; --i) {
      for (int part = 0; part <= (data ? 1 : 0); ++part) some.packed.insert(some.packed.end(), {static_cast<std::uint8_t>(below(6)), 0, 0, 0});
    }
    return {"t", "", name('s'), std::move(some), one_in(3)};
  }

  Expression expression() {
    const std::uint64_t from = 8 + below(12), to = 8 + below(12);
    switch (below(7)) {
      case 0: return {"meta-load", {std::uint64_t{3}, to}};
      case 1: return {"lookup", {name('s'), from, to}};
      case 2: return {"member", {name('s'), from, std::uint64_t{below(2)}}};
      case 3: return {"object", {std::uint64_t{1}, name('n')}};
      case 4: return {"verdict", {std::uint64_t{0}, std::uint64_t{0xffff'fffd}, name('c')}};
      case 5: return {"cmp", {from, std::uint64_t{below(7)}, Bytes(1 + below(20))}};
      default: return {"counter", {}};
    }
  }

  std::mt19937 random_;
};

std::string text(const Object& object) {
  std::string line = std::to_string(static_cast<int>(object.kind)) + ' ' + object.table + ' ' + object.chain + ' ' + object.set + ' ' + object.counter + ' ' +
                     std::to_string(object.flags) + ' ' + std::to_string(object.handle) + ' ' + std::to_string(object.priority) + ' ';
  for (const Bytes* bytes : {&object.key, &object.data, &object.expressions}) line.append(bytes->begin(), bytes->end()) += ' ';
  return line;
}

/// Everything of the table, in an order of its own.
std::vector<std::string> state(Socket& socket) {
  std::vector<Object> objects;
  std::vector<std::string> lines;
  const auto add = [&](ObjectKind kind, const std::string& set) {
    objects.clear();
    const int error = socket.dump(kind, "t", set, objects).error;
    // Without the table the kernel knows no kinds of it.
    EXPECT_TRUE(error == 0 || error == -ENOENT) << error;
    for (const Object& object : objects) lines.push_back(text(object));
  };
  for (const ObjectKind kind : {ObjectKind::table, ObjectKind::chain, ObjectKind::rule, ObjectKind::counter, ObjectKind::set}) add(kind, "");
  const std::vector<Object> sets = std::move(objects);
  for (const Object& set : sets) add(ObjectKind::element, set.set);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(NftRandom, NoPlanThatIsRefusedIsHalfDone) {
  test::in_namespace([] {
    Socket socket;
    ASSERT_EQ(socket.open(), 0);
    Plans plans(20'261'201);
    auto before = state(socket);
    int done = 0, refused_late = 0;
    for (int i = 0; i < kPlans; ++i) {
      std::uint32_t generation = 0, after = 0;
      ASSERT_EQ(socket.generation(generation).error, 0);
      const Plan plan = plans.next();
      const Outcome outcome = socket.apply(plan);
      ASSERT_EQ(socket.generation(after).error, 0);
      auto now = state(socket);
      if (outcome.error == 0) {
        ++done;
      } else {
        ASSERT_EQ(now, before) << "plan " << i << ": " << outcome.text;
        ASSERT_EQ(after, generation) << "plan " << i;
        ASSERT_GE(outcome.operation, 0) << outcome.error << ' ' << outcome.text;
        if (outcome.operation > 0) ++refused_late;
      }
      before = std::move(now);
    }
    // Both kinds are there in numbers, else the plans show nothing.
    EXPECT_GT(done, kPlans / 20);
    EXPECT_GT(refused_late, kPlans / 5);
  });
}

}  // namespace
}  // namespace holdfast::nft
