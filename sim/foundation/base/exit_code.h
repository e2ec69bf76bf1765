// How the program ends: one number for each outcome that a script may want to distinguish.
#pragma once

namespace specsim {

enum class ExitCode {
  fine = 0,
  disagree = 1,        // simulation and theory differ, or a claim and the counts do
  bad_input = 2,       // configs, options, files that are read: the message has the place and what is allowed
  untested = 3,        // nothing disagrees, but not every cell was tested as it should be: too few rounds, or no theory
  io_failed = 4,       // the machine failed: a full disk, a file that cannot be written or read, no memory, no threads
  internal_error = 5,  // a broken invariant: a defect of this program
  interrupted = 6,     // SIGINT or SIGTERM; finished work is kept if there is an --out to resume from
};

}  // namespace specsim
