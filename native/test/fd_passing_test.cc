#include "fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

class FdPassing : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(open_channel(channel_), 0); }

  Channel channel_;
};

TEST_F(FdPassing, CarriesTextAndDescriptorsInOrder) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  net::UniqueFd out(pipe[0]);
  net::UniqueFd in(pipe[1]);
  const std::array sent{out.get(), in.get()};
  ASSERT_EQ(send_parcel(channel_.ours.get(), "a pipe", sent, 1s), 0);
  ASSERT_EQ(send_parcel(channel_.ours.get(), "", {}, 1s), 0);

  Parcel parcel;
  ASSERT_EQ(receive_parcel(channel_.theirs.get(), parcel, 1s), 0);
  EXPECT_EQ(parcel.text, "a pipe");
  ASSERT_EQ(parcel.fds.size(), 2u);
  EXPECT_NE(::fcntl(parcel.fds[1].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(::write(parcel.fds[1].get(), "x", 1), 1);
  char got = 0;
  ASSERT_EQ(::read(out.get(), &got, 1), 1);
  EXPECT_EQ(got, 'x');
  ASSERT_EQ(receive_parcel(channel_.theirs.get(), parcel, 1s), 0);
  EXPECT_TRUE(parcel.fds.empty());
}

TEST_F(FdPassing, CarriesMoreThanTheSocketHolds) {
  const std::vector<int> fds(kMostPassed, channel_.ours.get());
  const std::string text(1 << 20, 'x');
  std::thread sender([&] {
    for (int i = 0; i < 8; ++i) EXPECT_EQ(send_parcel(channel_.ours.get(), text, fds, 10s), 0);
  });
  for (int i = 0; i < 8; ++i) {
    Parcel parcel;
    EXPECT_EQ(receive_parcel(channel_.theirs.get(), parcel, 10s), 0);
    EXPECT_EQ(parcel.fds.size(), kMostPassed);
    EXPECT_EQ(parcel.text, text);
  }
  sender.join();
}

TEST_F(FdPassing, SaysWhenNothingComesOrNobodyIsThere) {
  Parcel parcel;
  EXPECT_EQ(receive_parcel(channel_.theirs.get(), parcel, 1ms), -ETIMEDOUT);
  channel_.ours.reset();
  EXPECT_EQ(receive_parcel(channel_.theirs.get(), parcel, 1s), -EPIPE);
  EXPECT_EQ(send_parcel(channel_.theirs.get(), "x", {}, 1s), -EPIPE);
}

TEST_F(FdPassing, RefusesWhatIsNoParcel) {
  const std::vector<int> many(kMostPassed + 1, channel_.ours.get());
  EXPECT_EQ(send_parcel(channel_.ours.get(), "", many, 1s), -EMSGSIZE);
  EXPECT_EQ(send_parcel(channel_.ours.get(), std::string((1 << 20) + 1, 'x'), {}, 1s), -EMSGSIZE);
  ASSERT_EQ(::send(channel_.ours.get(), "\xff\xff\xff\xff\0\0\0\0", 8, 0), 8);
  Parcel parcel;
  EXPECT_EQ(receive_parcel(channel_.theirs.get(), parcel, 1s), -EBADMSG);
}

/// One that says more descriptors than it brings: the kernel has left some out.
TEST_F(FdPassing, SaysWhenDescriptorsAreMissing) {
  ASSERT_EQ(::send(channel_.ours.get(), "\0\0\0\0\1\0\0\0", 8, 0), 8);
  Parcel parcel;
  EXPECT_EQ(receive_parcel(channel_.theirs.get(), parcel, 1s), -EMFILE);
}

}  // namespace
}  // namespace holdfast
