#include "histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace holdfast::testing {
namespace {

using namespace std::chrono_literals;
using proxy::Histogram;
using proxy::kBounds;
using proxy::kDialBounds;

std::uint64_t in_class(const Histogram& histogram, std::size_t at) { return histogram.classes().at(at).value(); }

TEST(Histogram, AValueIsInTheFirstClassWhoseBoundItDoesNotExceed) {
  Histogram histogram;
  histogram.observe(kDialBounds, 0us);
  histogram.observe(kDialBounds, 100us);
  histogram.observe(kDialBounds, 101us);
  histogram.observe(kDialBounds, 3s);
  EXPECT_EQ(in_class(histogram, 0), 2U);
  EXPECT_EQ(in_class(histogram, 1), 1U);
  EXPECT_EQ(in_class(histogram, kBounds - 1), 1U);
  EXPECT_EQ(in_class(histogram, kBounds), 0U);
  EXPECT_EQ(histogram.sum_us(), 3'000'201U);
}

TEST(Histogram, TheLastClassHasNoBoundAndATimeThatWentBackIsNone) {
  Histogram histogram;
  histogram.observe(kDialBounds, 24h);
  histogram.observe(kDialBounds, -5ms);
  EXPECT_EQ(in_class(histogram, kBounds), 1U);
  EXPECT_EQ(in_class(histogram, 0), 1U);
  EXPECT_EQ(histogram.sum_us(), 86'400'000'000U);
}

TEST(Histogram, BoundsAscend) {
  EXPECT_TRUE(std::is_sorted(kDialBounds.begin(), kDialBounds.end()));
  EXPECT_TRUE(std::is_sorted(proxy::kConnectionBounds.begin(), proxy::kConnectionBounds.end()));
}

}  // namespace
}  // namespace holdfast::testing
