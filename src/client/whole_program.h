// The client program's way out: whatever it cannot do itself is done by `tutti`, which lies beside it.
#pragma once

namespace tutti::client {

// To be called first in main(): the words to start `tutti` with.
void remember_arguments(char** argv);
// Becomes `tutti` with the same words; does not return. If that is impossible it says why and ends
// the process with 1.
[[noreturn]] void become_whole_program();

}  // namespace tutti::client
