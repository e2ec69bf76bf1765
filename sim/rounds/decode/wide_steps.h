// The steps of a position of many rounds side by side, with the widest instructions that the processor has. The choice is made at
// run time, so one program runs on all processors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace specsim::decode::wide {

// Steps work on whole registers, so arrays have this many spare elements after those that count.
constexpr std::size_t kSlack = 16;

// Whether the processor has instructions that make the wide steps worthwhile.
bool available();

// The column of an alias table of `vocab` entries for each number, and the 46 bits that then decide between the column's own
// token and its alias: see math::alias_pick.
void columns(const std::uint64_t* random_bits, std::size_t count, std::uint64_t vocab, std::uint64_t* column,
             std::uint64_t* rest);

// The tokens, given the columns' entries. `token` may be `column`.
void tokens(const std::uint64_t* entry, const std::uint64_t* column, const std::uint64_t* rest, std::size_t count,
            std::uint64_t* token);

// Decides on a draft token in each of the `lanes` by its entry of an accept table. Those that accept are moved to the front of
// `lanes`, in order, each with its token's output class: lane | class << 16 in `accepted`. Returns how many do.
std::uint32_t judge(const std::uint64_t* accept_bits, const std::uint64_t* entry, std::uint32_t count, std::uint32_t* lanes,
                    std::uint32_t* accepted);

}  // namespace specsim::decode::wide
