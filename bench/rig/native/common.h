#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rig {

/// What every case sends: one message, echoed back whole.
inline constexpr std::size_t kMessageSize = 64;

std::uint64_t now_ns() noexcept;

/// Says `what` and errno on standard error and ends the process with 1.
[[noreturn]] void fail(const std::string& what);

/// `ip:port`; ends the process when it is none.
sockaddr_in parse_address(std::string_view text);
std::vector<std::string> split(std::string_view text, char separator);

/// Soft limit to the hard one: 9,000 connections need it.
void raise_file_limit();
void enable(int fd, int level, int option);
/// Room for a burst of datagrams, so that the socket itself loses none.
void widen_buffers(int fd);

}  // namespace rig
