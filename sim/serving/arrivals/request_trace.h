// What clients ask of a server: requests with their lengths, and when they are sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace specsim::arrivals {

using RequestId = std::uint32_t;

// Whole picoseconds since the start of a run, as SimTime counts them.
using Picoseconds = std::int64_t;
constexpr Picoseconds kNever = INT64_MAX;
constexpr double kPicosecondsPerSecond = 1e12;
constexpr double kLongestRun = 4.5e6;  // seconds; one more step that takes as long again still fits into Picoseconds

struct Request {
  Picoseconds due = 0;        // when the client would send it, were there no limit on what is in flight
  std::uint32_t prompt = 1;   // tokens
  std::uint32_t output = 1;   // tokens; it ends there
  std::uint32_t limit = 0;    // output tokens at which the server would end it; 0: `output`. An output below it ends unforeseen
  std::int32_t priority = 0;  // lower goes first, where the scheduler looks at it
  std::uint32_t first_hash = 0;  // its prompt's block hashes in RequestTrace::hashes
  std::uint32_t hashes = 0;
  std::uint32_t hashed = 0;   // tokens that these stand for, where later prompts hold this one's output as well
  std::uint32_t follows = 0;  // 1 + the request whose answer its prompt holds; 0: none
  std::uint32_t line = 0;     // where it stands in RequestTrace::file; 0: it was read from no file
};

struct RequestTrace {
  std::string file;               // file that the requests were read from; "" for none
  std::vector<Request> requests;  // in the order in which they are sent, `due` not falling
  // Hashes of the prompts' blocks of hash_tokens tokens, each standing for the prompt up to the block's end: equal hashes, equal
  // prefixes. Empty where nothing is known of shared prefixes.
  std::vector<std::uint64_t> hashes;
  std::uint32_t hash_tokens = 16;
  std::uint32_t concurrency = 0;  // requests in flight at most, more wait in the client; 0: no limit
  // A request that follows another is sent when that one has ended and the time between the two `due` has passed, whatever its
  // own `due` is: requests are then not sent in their order.
  bool answers_first = false;
  Picoseconds think = 0;  // between the end of a request and the next of the same client, where concurrency is limited
};

}  // namespace specsim::arrivals
