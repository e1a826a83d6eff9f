#include "dns_responder.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>

#include "dns_codec.h"
#include "dns_messages.h"

namespace holdfast::dns {
namespace {

/// An asker on loopback, connected to a port that was free.
class Client {
 public:
  Client() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const timeval wait{1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  }
  void connect(std::uint16_t port) {
    const net::RawAddress to(net::SocketAddress::loopback(port));
    ASSERT_EQ(::connect(fd_.get(), to.data(), to.size()), 0);
  }
  /// Empty when nothing comes within a second.
  Bytes ask(const Bytes& query) {
    ::send(fd_.get(), query.data(), query.size(), 0);
    Bytes answer(2'048);
    const ssize_t size = ::recv(fd_.get(), answer.data(), answer.size(), 0);
    answer.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
    return answer;
  }

 private:
  net::UniqueFd fd_;
};

std::uint16_t free_port() {
  net::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const net::RawAddress any(net::SocketAddress::loopback(0));
  ::bind(fd.get(), any.data(), any.size());
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return net::SocketAddress::from(bound).port;
}

std::shared_ptr<CacheEntry> cached(std::string_view name) {
  Bytes message = message_of(0, 0x8180, name, 1, 1);
  add_address(message, 1);
  auto entry = std::get<std::shared_ptr<CacheEntry>>(decode_cache_entry(message, false, false));
  entry->put_at = net::Clock::now();
  entry->expires_at = entry->refresh_at = entry->put_at + std::chrono::minutes(1);
  return entry;
}

int rcode(const Bytes& answer) { return answer.size() < 4 ? -1 : answer[3] & 0xf; }

TEST(DnsResponder, HandsUpAndGivesTheAnswerToWhoAsked) {
  std::promise<Question> asked;
  Responder responder(1, [&](Question question) {
    asked.set_value(std::move(question));
    return true;
  });
  const std::uint16_t port = free_port();
  ASSERT_FALSE(responder.listen({net::SocketAddress::loopback(port)})[0].error);
  Client asker;
  asker.connect(port);
  std::thread above([&] {
    const Question question = asked.get_future().get();
    Bytes answer = question.query;
    answer[2] |= 0x80;
    responder.answer(*question.handle, answer);
    responder.answer(*question.handle, answer);
  });
  EXPECT_EQ(rcode(asker.ask(message_of(5, 0, "a.test", 1))), 0);
  above.join();
  const Stats stats = responder.stats();
  EXPECT_EQ(stats.handed_up, 1u);
  EXPECT_EQ(stats.waiting, 0u);
  EXPECT_EQ(stats.answered[type_row(1)][0], 1u);
}

TEST(DnsResponder, WhatIsNotTakenIsDroppedAndCounted) {
  Responder responder(1, [](Question) { return false; });
  const std::uint16_t port = free_port();
  responder.listen({net::SocketAddress::loopback(port)});
  responder.put_cached(cached("b.test"));
  Client asker;
  asker.connect(port);
  asker.ask(message_of(5, 0, "a.test", 1));
  EXPECT_EQ(responder.stats().dropped_questions, 1u);
  EXPECT_EQ(responder.stats().waiting, 0u);
  EXPECT_EQ(rcode(asker.ask(message_of(5, 0, "b.test", 1))), 0);
  EXPECT_EQ(responder.stats().cache_hits, 1u);
}

TEST(DnsResponder, TablesChangeWhileThreadsAnswer) {
  Responder responder(3, nullptr);
  const std::uint16_t port = free_port();
  responder.listen({net::SocketAddress::loopback(port)});
  const auto delta = [](std::string id, std::uint32_t serial) {
    auto made = std::make_shared<ZoneDelta>();
    made->serial = serial;
    auto apexes = std::make_shared<std::vector<Apex>>();
    apexes->push_back({wire_name("test"), wire_name("test"), wire_name("h.test"), 1, 2, 3, 5, false});
    made->apexes = apexes;
    for (const std::string& name : {std::string("a.test"), id + ".test"}) {
      auto group = std::make_shared<ReadyGroup>();
      group->id = name;
      Bytes message = message_of(0, 0x8000, name, 1, 1);
      add_address(message, 1);
      Message read;
      std::vector<Record> records;
      read_message(message, read, &records);
      group->names.push_back({wire_name(name), {{1, body_of(message, read, records)}}});
      made->upsert.push_back(group);
    }
    return made;
  };
  const auto apply = [&](std::uint32_t serial) {
    std::promise<void> taken;
    responder.apply(delta("x" + std::to_string(serial % 7), serial), [&] { taken.set_value(); });
    taken.get_future().wait();
  };
  apply(0);
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      Client asker;
      asker.connect(port);
      while (!done) wrong += rcode(asker.ask(message_of(1, 0, "a.test", 1))) != 0;
    });
  }
  for (std::uint32_t serial = 1; serial < 200; ++serial) apply(serial);
  done = true;
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(responder.stats().names, 8u);
  responder.stop();
  responder.stop();
}

}  // namespace
}  // namespace holdfast::dns
