#include "nft_reply.h"

#include <cstdlib>

namespace {

using namespace holdfast::nft;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

/// Whatever the kernel's answer is, what is read of it is no larger than it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> datagram(data, size);
  Answers answers;
  read_answers(datagram, answers);
  require(answers.done.size() * 16 <= size && answers.text.size() <= size);
  Dump dump;
  read_dump(datagram, 7, dump);
  // An element takes at least the 4 bytes of its attribute, every other object a message.
  require(dump.objects.size() * 4 <= size);
  for (const Object& object : dump.objects) require(object.key.size() + object.data.size() + object.expressions.size() <= size);
  read_generation(datagram, 7);
  return 0;
}
