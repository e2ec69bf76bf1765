// The load of a server: requests with their lengths, and when they are sent.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace specsim::arrivals {

using RequestId = std::uint32_t;

// Whole picoseconds since the start of a run, as SimTime counts them.
using Picoseconds = std::int64_t;
constexpr Picoseconds kNever = INT64_MAX;
constexpr double kPicosecondsPerSecond = 1e12;
constexpr double kLongestRun = 4.5e6;  // seconds; twice this time still fits into Picoseconds
constexpr auto kLastMoment = static_cast<Picoseconds>(kLongestRun * kPicosecondsPerSecond);

struct Request {
  Picoseconds due = 0;       // when the client would send it if there were no limit of requests in flight
  std::uint32_t prompt = 1;  // tokens
  std::uint32_t output = 1;  // tokens of its answer; it ends there
  // output tokens at which the server would end it; 0: `output`. If `output` is smaller, the request ends earlier than the server
  // can foresee
  std::uint32_t limit = 0;
  std::int32_t priority = 0;     // lower goes first, if the scheduler uses priorities
  std::uint32_t first_hash = 0;  // its prompt's block hashes in RequestTrace::hashes
  std::uint32_t hashes = 0;
  std::uint32_t hashed = 0;   // tokens of these hashes, if later prompts contain this request's output as well
  std::uint32_t follows = 0;  // 1 + the request whose answer its prompt contains; 0: none
  std::uint32_t line = 0;     // its line in RequestTrace::file; 0: it was not read from a file
};

struct RequestTrace {
  std::string file;               // file that the requests were read from; "" for none
  std::vector<Request> requests;  // in the order of sending, `due` not decreasing
  // Hashes of the prompts' blocks of hash_tokens tokens, each for the prompt up to the block's end: equal hashes mean equal
  // prefixes. Empty if shared prefixes are not known.
  std::vector<std::uint64_t> hashes;
  std::uint32_t hash_tokens = 16;
  std::uint32_t concurrency = 0;  // most requests in flight, others wait in the client; 0: no limit
  // A request that follows another is sent when that one has ended and the time between the two `due` has passed, whatever its
  // own `due` is. Requests are then not sent in their order.
  bool answers_first = false;
  // If it is set while the requests are made, only some are made.
  const std::atomic<bool>* stop = nullptr;
  [[nodiscard]] bool stopped() const { return stop != nullptr && *stop; }
  Picoseconds think = 0;  // between the end of a request and the next of the same client, if concurrency is limited
};

}  // namespace specsim::arrivals
