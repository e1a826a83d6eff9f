#include "conntrack_row.h"

/// Rows from JavaScript: what is taken comes out again as it was, but for the bytes that mean nothing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::conntrack;
  const std::span<const std::uint8_t> input(data, size);
  read_selectors(input);
  const auto entries = read_rows(input);
  if (!entries) return 0;
  Bytes rows;
  for (const Entry& entry : *entries) append_row(entry, rows);
  if (read_rows(rows) != entries) __builtin_trap();
  return 0;
}
