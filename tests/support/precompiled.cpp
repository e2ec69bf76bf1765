// Gives the precompiled header a target to belong to.
#include "tests/support/precompiled.h"
