#include "flow.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "loopback.h"

namespace holdfast::proxy {
namespace {

using testing::UniqueFd;

/// Two connected TCP sockets that do not block.
std::pair<UniqueFd, UniqueFd> connected_pair() {
  const UniqueFd listener = testing::listen_on_loopback();
  UniqueFd one = testing::connect_to(testing::port_of(listener.get()));
  UniqueFd two(::accept(listener.get(), nullptr, nullptr));
  for (const UniqueFd* fd : {&one, &two}) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  return {std::move(one), std::move(two)};
}

std::size_t write_some(int fd, std::size_t size) {
  const std::string text(size, 'x');
  const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

std::size_t read_all(int fd) {
  char buffer[65536];
  std::size_t total = 0;
  for (ssize_t got; (got = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) total += static_cast<std::size_t>(got);
  return total;
}

struct Pumped {
  std::size_t written = 0;
  std::size_t arrived = 0;
};

/// A writer that never rests and a reader that does.
Pumped pump_through(PipePool& pipes) {
  const auto [writer, source] = connected_pair();
  const auto [sink, reader] = connected_pair();
  std::vector<std::uint8_t> scratch(64 * 1024);
  Flow flow(Flow::Promptness::at_second_send);
  Counter bytes;
  Pumped pumped;
  for (int turn = 0; turn < 400; ++turn) {
    if (turn < 300) pumped.written += write_some(writer.get(), 256 * 1024);
    if (turn == 300) ::shutdown(writer.get(), SHUT_WR);
    flow.source_ready(turn >= 300);
    flow.sink_ready();
    flow.pump(source.get(), sink.get(), {scratch, pipes}, 1 << 20, bytes);
    if (turn % 7 == 0 || turn >= 300) pumped.arrived += read_all(reader.get());
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  flow.pump(source.get(), sink.get(), {scratch, pipes}, 1 << 20, bytes);
  pumped.arrived += read_all(reader.get());
  EXPECT_EQ(bytes.value(), pumped.written);
  EXPECT_EQ(flow.pump(source.get(), sink.get(), {scratch, pipes}, 1, bytes), Flow::State::ended);
  flow.drop(pipes);
  return pumped;
}

TEST(Flow, BulkArrivesWithAndWithoutPipes) {
  for (const std::size_t most : {0U, 1U, 8U}) {
    PipePool pipes(most);
    const Pumped pumped = pump_through(pipes);
    EXPECT_GT(pumped.written, 10'000'000U);
    EXPECT_EQ(pumped.arrived, pumped.written);
    // Given back: as many can be taken as there may be.
    for (std::size_t i = 0; i < most; ++i) EXPECT_NE(pipes.take(), nullptr);
    EXPECT_EQ(pipes.take(), nullptr);
  }
}

TEST(Flow, WhatIsPreloadedGoesFirstAndIsCountedInPart) {
  const auto [writer, source] = connected_pair();
  const auto [sink, reader] = connected_pair();
  std::vector<std::uint8_t> scratch(1024);
  PipePool pipes(0);
  Flow flow(Flow::Promptness::at_second_send);
  Counter bytes;
  const std::string first = "header, hello";
  flow.preload({reinterpret_cast<const std::uint8_t*>(first.data()), first.size()}, 8);
  testing::send_all(writer.get(), " world");
  flow.source_ready(false);
  flow.pump(source.get(), sink.get(), {scratch, pipes}, 1024, bytes);
  ::fcntl(reader.get(), F_SETFL, 0);
  EXPECT_EQ(testing::receive(reader.get(), 19), "header, hello world");
  EXPECT_EQ(bytes.value(), 11U);
}

TEST(PipePool, IsBoundedAndReplacesWhatStillHoldsBytes) {
  PipePool pipes(2);
  auto one = pipes.take();
  auto two = pipes.take();
  ASSERT_TRUE(one && two);
  EXPECT_GE(one->capacity, 65'536U);
  EXPECT_EQ(pipes.take(), nullptr);
  const int fd = two->read_end.get();
  one->bytes = 1;
  pipes.give_back(std::move(one));
  pipes.give_back(std::move(two));
  auto again = pipes.take();
  EXPECT_EQ(again->read_end.get(), fd);
  EXPECT_TRUE(pipes.take());
}

}  // namespace
}  // namespace holdfast::proxy
