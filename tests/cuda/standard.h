/*
 * standard.h - the standard headers of the emulation, which emulate.sh compiles once for many kernels.
 */
#ifndef EMULATED_STANDARD_H
#define EMULATED_STANDARD_H

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <math.h>
#include <type_traits>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#endif
