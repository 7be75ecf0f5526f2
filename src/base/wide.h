// Products of two 64-bit numbers, whole.
#pragma once

namespace tutti {

__extension__ typedef unsigned __int128 Wide;

}  // namespace tutti
