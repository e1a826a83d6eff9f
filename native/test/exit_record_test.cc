#include "exit_record.h"

#include <gtest/gtest.h>

#include <limits>

namespace holdfast::runner {
namespace {

TEST(ExitRecord, IsText) {
  ExitRecord record;
  record.exit_code = 3;
  record.out = {5, 7};
  EXPECT_EQ(encode(record),
            "holdfast-exit 1\nexit-code 3\nsignal 0\ntimed-out 0\ncancelled 0\nstart-error -\nstdout 5 7\nstderr 0 0\nend\n");
}

TEST(ExitRecord, FitsIntoWhatIsReserved) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  const ExitRecord record{-1, 64, true, true, "EPROTONOSUPPORT", {most, most}, {most, most}};
  EXPECT_LE(encode(record).size(), kMaxExitRecord);
}

}  // namespace
}  // namespace holdfast::runner
