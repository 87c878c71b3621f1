// header.cc: the header as C++. Owns nothing; that it compiles without a warning and links is the test.
#include "respb.h"

int main() {
    respb_request_decoder decoder;
    respb_limits limits;
    respb_limits_default(&limits);
    respb_value key = respb_bytes("key", 3);
    respb_value number = respb_integer(-7);
    char frame[64];
    respb_value args[2] = {key, number};
    bool good = respb_request_decoder_init(&decoder, sizeof decoder, RESPB_PROTOCOL_RESPB, &limits) == RESPB_OK &&
                respb_encode_request(RESPB_FORM_FOLD, 3, "incrby", args, 2, frame, sizeof frame) == 17 &&
                respb_abi_version() == RESPB_ABI_VERSION;
    return good ? 0 : 1;
}
