// The address map that a bench and its model are built for.
#pragma once

#include "words.hpp"

#ifndef MAP_N
#define MAP_N 28
#endif
#ifndef MAP_T
#define MAP_T 20
#endif

namespace bench {

constexpr velo::Map MAP{MAP_N, MAP_T};

} // namespace bench
