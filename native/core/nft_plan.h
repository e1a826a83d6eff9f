#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "netlink_message.h"

namespace holdfast::nft {

using netlink::Bytes;

/// A register, a key, a modulus …; the name of a set or chain; the bytes that are compared or masked.
using Value = std::variant<std::uint64_t, std::string, Bytes>;

/// `name` is one of the catalogue in nft_expression.cc, which says what the values are, in their order.
struct Expression {
  std::string name;
  std::vector<Value> values;
};

/// Flags of linux/netfilter/nf_tables.h; owner and persist together keep the table from others, and beyond the process (Linux 6.9).
struct Table {
  std::uint32_t flags = 0;
};

struct Hook {
  /// filter, nat or route.
  std::string type;
  /// linux/netfilter.h: prerouting is 0, postrouting 4, ingress 5.
  std::uint32_t number = 0;
  std::int32_t priority = 0;
  /// Whose packets an ingress hook sees; "" for the others. Linux 6.16 and later take a chain before its device is there, and keep it when the device
  /// goes; older ones refuse it (ENOENT), and remove it.
  std::string device = {};
};

struct Chain {
  std::optional<Hook> hook;
};

struct Rule {
  std::vector<Expression> expressions;
};

struct Set {
  std::uint32_t flags = 0;
  /// The numbers by which nft(8) prints; the kernel passes them on. 0xffffff00 as `data_type` makes a verdict map.
  std::uint32_t key_type = 0;
  std::uint32_t data_type = 0;
  std::uint32_t data_bytes = 0;
  /// Lengths of the concatenated fields, each in registers of its own: a field of 2 bytes takes 4 of the key.
  std::vector<std::uint32_t> fields;
  /// Elements at most; 0: no limit.
  std::uint32_t size = 0;
  /// What an element lives without another word, milliseconds; 0: for ever.
  std::uint64_t timeout_ms = 0;
};

/// Keys and data of one length each, one after the other: key, data, key, data …
struct Elements {
  std::uint32_t key_bytes = 0;
  /// 0: a set, or elements that are deleted.
  std::uint32_t data_bytes = 0;
  Bytes packed;
  /// For a verdict map: go to, or jump to, each of these chains, one for each key.
  std::vector<std::string> chains;
  bool jump = false;
  /// What each of them lives, of a set with time-outs; 0: what the set says.
  std::uint64_t timeout_ms = 0;
};

/// A named counter: rules that come and go count with it (`object`), and it keeps what was counted. Again changes nothing.
struct Counter {};

/// All rules of the chain, or all elements of the set, that are named go; the chain or set stays.
struct Flush {};

struct Remove {
  /// Of one rule of the chain; 0: the chain.
  std::uint64_t rule = 0;
};

/// One step of a plan on an object of our family (inet). With `Remove` the object goes: the table without `chain`, `set` and `counter`, else
/// the one that is named. A chain in a `Rule` is the one that it is appended to.
struct Operation {
  std::string table;
  std::string chain;
  std::string set;
  std::variant<Table, Chain, Rule, Set, Elements, Counter, Flush, Remove> what;
  /// Of `Elements`: they go.
  bool remove = false;
  /// Of a named counter.
  std::string counter = {};
};

/// All of it happens at once, or nothing.
using Plan = std::vector<Operation>;

}  // namespace holdfast::nft
