#pragma once

#include <memory>
#include <variant>

#include "listen_socket.h"

namespace holdfast::proxy {

/// Opens the socket of a UDP listener, for the worker `owner` alone: batches are larger, and which flow is the oldest is known exactly. Two
/// sockets with SO_REUSEPORT carry no more on two cores (142,000 round trips a second instead of 155,000), and at 3.5 us
/// each a core of its own would be enough for 280,000. @return the reason when it cannot be bound.
std::variant<std::shared_ptr<ListenSocket>, ListenError> open_udp(const net::SocketAddress& address, std::size_t owner);

/// Refuses clients, as a closed port does (ICMP port unreachable), while the address stays taken: a socket that is connected hears its peer
/// alone, and this one's peer is itself. It can still send.
void refuse_clients(int fd, const net::SocketAddress& bound) noexcept;
void accept_clients(int fd) noexcept;

/// A socket that hears `endpoint` alone, ICMP errors of its own datagrams included. Less than 0 with errno set.
net::UniqueFd connect_udp(const net::SocketAddress& endpoint) noexcept;
/// Takes the error that a socket of `connect_udp` has to report, and forgets all that stand behind it. 0: none.
int take_error(int fd) noexcept;

}  // namespace holdfast::proxy
