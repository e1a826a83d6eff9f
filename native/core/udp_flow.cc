#include "udp_flow.h"

#include <random>

#include "udp_listener.h"

namespace holdfast::proxy {
namespace {

constexpr std::size_t kFirstBuckets = 16;

std::uint64_t random_seed() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

}  // namespace

void UdpFlow::on_event(std::uint32_t events) {
  if (fd) listener->on_replies(*this, events);
}

UdpFlow* UdpFlowPool::take() {
  if (free_ == nullptr) {
    blocks_.push_back(std::make_unique<UdpFlow[]>(kBlock));
    for (std::size_t i = 0; i < kBlock; ++i) give_back(&blocks_.back()[i]);
  }
  UdpFlow* flow = free_;
  free_ = flow->next;
  flow->next = nullptr;
  flow->requests = flow->replies = 0;
  flow->group = UdpFlow::kNoGroup;
  return flow;
}

void UdpFlowPool::give_back(UdpFlow* flow) noexcept {
  flow->next = free_;
  free_ = flow;
}

UdpFlowTable::UdpFlowTable() : seed_(random_seed()), buckets_(kFirstBuckets) {}

UdpFlow* UdpFlowTable::find(const UdpClient& client) const noexcept {
  UdpFlow* flow = buckets_[bucket(client)];
  while (flow != nullptr && !(flow->client == client)) flow = flow->next;
  return flow;
}

void UdpFlowTable::insert(UdpFlow& flow) {
  if (size_ == buckets_.size()) grow();
  UdpFlow*& head = buckets_[bucket(flow.client)];
  flow.next = head;
  flow.reachable = true;
  head = &flow;
  ++size_;
}

void UdpFlowTable::remove(UdpFlow& flow) noexcept {
  if (!flow.reachable) return;
  UdpFlow** link = &buckets_[bucket(flow.client)];
  while (*link != &flow) link = &(*link)->next;
  *link = flow.next;
  flow.next = nullptr;
  flow.reachable = false;
  --size_;
}

void UdpFlowTable::grow() {
  std::vector<UdpFlow*> chains(buckets_.size() * 2);
  chains.swap(buckets_);
  for (UdpFlow* flow : chains) {
    while (flow != nullptr) {
      UdpFlow* next = flow->next;
      UdpFlow*& head = buckets_[bucket(flow->client)];
      flow->next = head;
      head = flow;
      flow = next;
    }
  }
}

}  // namespace holdfast::proxy
