#include "udp_relay.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "worker.h"

namespace holdfast::proxy {
namespace {

/// Of one flow in one turn: no flow that sends without pause keeps the others waiting.
constexpr std::size_t kRepliesPerTurn = 32;

}  // namespace

UdpRelay::Buffers& UdpRelay::buffers() {
  if (!buffers_) buffers_ = std::make_unique<Buffers>();
  return *buffers_;
}

bool UdpRelay::apply(const ListenerUpdate& update) {
  const auto known = listeners_.find(update.id);
  const bool udp = update.config ? update.config->protocol == Protocol::udp : known != listeners_.end() && !known->second->removed();
  if (!udp) return false;
  std::unique_ptr<UdpListener>& slot = listeners_[update.id];
  if (!slot) slot = std::make_unique<UdpListener>(*this, update.id);
  slot->update(update);
  if (slot->gone()) forget(update.id);
  return true;
}

void UdpRelay::clear() noexcept {
  listeners_.clear();
  free_released();
}

/// Not at once: it may be the listener's own function that asks.
void UdpRelay::forget(ListenerId id) {
  worker_.loop().defer([this, id] {
    const auto found = listeners_.find(id);
    if (found == listeners_.end() || !found->second->gone()) return;
    if (replying_ == found->second.get()) send_replies();
    listeners_.erase(found);
  });
}

UdpListener* UdpRelay::reader(const ListenSocket* socket) const noexcept {
  const auto found = readers_.find(socket);
  return found == readers_.end() ? nullptr : found->second;
}

void UdpRelay::set_reader(const ListenSocket* socket, UdpListener* listener) {
  if (listener != nullptr) readers_[socket] = listener;
  else readers_.erase(socket);
}

void UdpRelay::stop(bool handed_over) {
  for (const auto& [id, listener] : listeners_) listener->stop(handed_over);
}

void UdpRelay::cut_all() {
  for (const auto& [id, listener] : listeners_) listener->cut();
}

UdpFlow& UdpRelay::add(UdpListener& listener, const UdpClient& client) {
  UdpFlow& flow = *pool_.take();
  flow.listener = &listener;
  flow.client = client;
  return flow;
}

void UdpRelay::release(UdpFlow& flow) noexcept {
  flow.UdpWorkerHook::unlink();
  worker_.limits().release_flow();
  if (released_ == nullptr) worker_.loop().defer([this] { free_released(); });
  flow.next = released_;
  released_ = &flow;
  worker_.connection_ended();
}

void UdpRelay::free_released() noexcept {
  while (released_ != nullptr) {
    UdpFlow* flow = released_;
    released_ = flow->next;
    pool_.give_back(flow);
  }
}

bool UdpRelay::take_place() noexcept { return worker_.limits().take_flow(); }

std::uint64_t UdpRelay::most_of_one() const noexcept { return worker_.limits().most_flows() * 3 / 4; }

UdpFlow* UdpRelay::oldest() noexcept { return flows_.empty() ? nullptr : &static_cast<UdpFlow&>(flows_.front()); }

int UdpRelay::take_replies(UdpFlow& flow) {
  Buffers& memory = buffers();
  if (replying_ != flow.listener || replies_used_ == kUdpBatch) send_replies();
  const std::size_t first = replies_used_;
  const int count = memory.replies.receive(flow.fd.get(), first, std::min(kUdpBatch - first, kRepliesPerTurn));
  if (count <= 0) return count;
  replying_ = flow.listener;
  for (std::size_t place = first; place < first + static_cast<std::size_t>(count); ++place) {
    if (memory.replies.cut(place)) {
      flow.listener->block().dropped.add(1);
    } else {
      memory.replies_out.add(&flow.client, memory.replies.datagram(place), flow.listener->segment_limit());
    }
  }
  replies_used_ += static_cast<std::size_t>(count);
  if (!reply_queued_) {
    reply_queued_ = true;
    worker_.loop().defer([this] {
      reply_queued_ = false;
      send_replies();
    });
  }
  return count;
}

void UdpRelay::send_replies() {
  UdpListener* listener = std::exchange(replying_, nullptr);
  replies_used_ = 0;
  if (listener == nullptr) return;
  UdpOutbox& out = buffers().replies_out;
  ListenerBlock& block = listener->block();
  while (!out.empty() && listener->socket()) {
    const UdpOutbox::Sent sent = out.send(listener->socket()->fd());
    block.bytes_out.add(sent.bytes);
    listener->segment_limit() = std::min(listener->segment_limit(), sent.segment_limit);
    // A full buffer (EAGAIN) stays full for those behind; other errors are this one client's.
    if (sent.error == EAGAIN) break;
    if (sent.error != 0) block.dropped.add(out.drop_front());
  }
  block.dropped.add(out.left());
  out.clear();
}

}  // namespace holdfast::proxy
