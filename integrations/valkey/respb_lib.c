/* respb_lib.c: librespb as one object of Valkey's build. Owns which profiles are in it: all but Flow. */
#define RESPB_NO_FLOW
#include "../deps/respb/respb.c"
