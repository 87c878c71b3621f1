/* respb.h: RESPB, RESP2 and RESP3 for C and C++.
 *
 * Owns the declarations of librespb and what a caller may rely on. The guide is docs/c-library.md; the protocol is
 * spec/RESPB.md. The library does no I/O, keeps no global state, takes no locks, and allocates nothing: decoders, writers
 * and arrays live in memory of the caller, who may free that memory at any time. There is nothing to destroy.
 *
 * Profiles. What a program does not need can be left out when the library is compiled, and where this header is included:
 * RESPB_NO_TYPED (typed frames and the command table), RESPB_NO_FLOW (WINDOW, FRAGMENT), RESPB_NO_CANCEL, RESPB_NO_RESP (RESP2,
 * RESP3 and the passthrough frame). RESPB_CHANNELS_ONLY is all four; doubles as text, which only typed frames and RESP need, go
 * with it. A frame of what is left out is what the specification says of it in section 1.4.
 *
 * Pointers. Decoded byte strings point into the buffer that was decoded; they are good until the caller changes, moves or
 * frees those bytes. Keywords, names and texts are constants of the library. Nothing else is kept from one call to the next.
 *
 * Threads. Any two calls may run at once as long as they share no object that either changes. An object may be moved with
 * memcpy between calls, and may be used by one thread after another.
 *
 * Errors. A function that returns respb_status answers RESPB_EINVAL to a null pointer, a size that is too small or a value
 * that makes no sense, and changes nothing then; respb_write_values keeps the values before such a one. No bytes from the network
 * can make a decoder do that, nor crash anything. What was decoded from one protocol and is written in another can: a simple string
 * of RESPB with a line end, an attribute before a push.
 */
#ifndef RESPB_H
#define RESPB_H

#include <stddef.h>
#include <stdint.h>

#ifdef RESPB_CHANNELS_ONLY
#define RESPB_NO_TYPED
#define RESPB_NO_FLOW
#define RESPB_NO_CANCEL
#define RESPB_NO_RESP
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface; librespb.so.N carries the same number. It changes when a program must be compiled anew. */
#define RESPB_ABI_VERSION 1

/* The version of the library that is linked, such as "0.1.0", and its RESPB_ABI_VERSION. */
const char *respb_version(void);
uint32_t respb_abi_version(void);

/* ---- Outcomes ---------------------------------------------------------------------------------------------------- */

typedef int32_t respb_status;

enum {
    RESPB_OK = 0,         /* done; a decoder has used up all bytes */
    RESPB_INCOMPLETE = 1, /* the last frame is not whole: read on */
    RESPB_FULL = 2,       /* an array or a buffer of the caller is full */
    RESPB_INVALID = -1,   /* the bytes are wrong: answer, then close */
    RESPB_EINVAL = -2,    /* an argument of the call is wrong */
    RESPB_EDEPTH = -3     /* a writer: aggregates nested deeper than RESPB_NESTING_MAX */
};

/* The protocols. As a decoder of requests, RESP2 and RESP3 are the same. */
enum { RESPB_PROTOCOL_RESP2 = 2, RESPB_PROTOCOL_RESP3 = 3, RESPB_PROTOCOL_RESPB = 4 };

/* ---- Limits ------------------------------------------------------------------------------------------------------ */

/* The deepest nesting that any setting allows. */
#define RESPB_NESTING_MAX 128

/* What a decoder refuses. Each number is the largest that is still accepted. */
typedef struct respb_limits {
    uint32_t arguments_max;      /* arguments of a request, its name included */
    uint32_t argument_bytes_max; /* bytes of one argument or of one text of a reply */
    uint32_t frame_bytes_max;    /* bytes of one frame, but for inline commands */
    uint32_t inline_bytes_max;   /* bytes of an inline command or of a line of a reply */
    uint32_t elements_max;       /* elements of one aggregate of a reply */
    uint8_t nesting_max;         /* aggregates inside each other in a reply */
    uint8_t unauthenticated;     /* 1: the client has not authenticated, and errors about size say so */
    uint8_t first_frame;         /* 1: a connection's start: a RESPB frame that zero bytes would give is refused */
    uint8_t reserved;            /* 0 */
} respb_limits;

/* What a client may send; the numbers are those of Redis. */
void respb_limits_default(respb_limits *limits);
/* What a client may send before it has authenticated, where it must (spec section 10): 16 arguments, 16,384 bytes. */
void respb_limits_unauthenticated(respb_limits *limits);

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* What a value is. The first five are arguments of requests; all but QUOTED and KEYWORD can be in a reply. */
enum {
    RESPB_BYTES = 0,      /* value.data, len: an argument, a bulk, a chunk of a streamed text */
    RESPB_QUOTED = 1,     /* value.data, len: a word of an inline command with its quotes; see respb_value_text */
    RESPB_INTEGER = 2,    /* value.integer */
    RESPB_DOUBLE = 3,     /* value.number; never NaN in a request */
    RESPB_KEYWORD = 4,    /* value.data, len: a word of the command table, such as NX; a constant of the library */
    RESPB_SIMPLE = 5,     /* value.data, len: a status such as OK */
    RESPB_ERROR = 6,      /* value.data, len: an error, its code first, without '-' */
    RESPB_BIG_NUMBER = 7, /* value.data, len: decimal digits */
    RESPB_VERBATIM = 8,   /* value.data, len, format */
    RESPB_BOOLEAN = 9,    /* value.integer: 0 or 1 */
    RESPB_NULL = 10,
    RESPB_NULL_ARRAY = 11, /* RESP2's other null */
    RESPB_ARRAY = 12,      /* value.integer elements follow; -1: as many as come before RESPB_CLOSE */
    RESPB_MAP = 13,        /* twice value.integer elements follow; -1: as many as come before RESPB_CLOSE */
    RESPB_SET = 14,        /* as RESPB_ARRAY */
    RESPB_PUSH = 15,       /* value.integer elements follow */
    RESPB_ATTRIBUTE = 16,  /* twice value.integer elements follow, then the value that they describe */
    RESPB_CLOSE = 17,      /* the end of what has length -1 */
    RESPB_TEXT = 18        /* chunks of one byte string follow as RESPB_BYTES, then RESPB_CLOSE */
};

/* An argument of a request, or one value of a reply. */
typedef struct respb_value {
    union {
        const char *data; /* not ended by a zero byte */
        int64_t integer;
        double number;
    } value;
    uint32_t len; /* bytes at value.data */
    uint8_t kind;
    uint8_t format[3]; /* of RESPB_VERBATIM: "txt", "mkd" */
} respb_value;

/* A byte string and an integer as arguments of the encoders. Of more than UINT32_MAX bytes it is a value of no kind, which every
 * function refuses. */
static inline respb_value respb_bytes(const void *data, size_t len) {
    respb_value made;
    made.value.data = (const char *)data;
    made.len = (uint32_t)len;
    made.kind = made.len == len ? RESPB_BYTES : UINT8_MAX;
    made.format[0] = made.format[1] = made.format[2] = 0;
    return made;
}

static inline respb_value respb_integer(int64_t integer) {
    respb_value made = respb_bytes(NULL, 0);
    made.value.integer = integer;
    made.kind = RESPB_INTEGER;
    return made;
}

/* Writes an argument as a text protocol carries it: bytes as they are, quotes resolved, numbers in decimal. Returns how many
 * bytes that takes and writes as many of them as there is room for; 0 also for a value that has no text. `value` must not
 * point into `buffer`. */
size_t respb_value_text(const respb_value *value, char *buffer, size_t capacity);

/* An argument as a number: what the wire carried in binary, or decimal digits, in quotes or not, in the one spelling that is
 * canonical (spec section E.3). Otherwise RESPB_INVALID, and *number is untouched. */
respb_status respb_value_integer(const respb_value *value, int64_t *number);
respb_status respb_value_double(const respb_value *value, double *number);

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

enum {
    RESPB_FRAME_RESP = 0,        /* a RESP request; the first argument is the name; none at all for an empty line: pass over */
    RESPB_FRAME_CORE = 1,        /* a typed request: opcode and command name it, its name is no argument */
    RESPB_FRAME_MODULE = 2,      /* the same for a command of a module; command names it */
    RESPB_FRAME_ARGV = 3,        /* a request as arguments; the first is the name */
    RESPB_FRAME_PASSTHROUGH = 4, /* the same, from RESP; answered in RESPB */
    RESPB_FRAME_CLOSE = 5,       /* number: the code; its value: the reason */
    RESPB_FRAME_CANCEL = 6,      /* number: the sequence */
    RESPB_FRAME_WINDOW = 7,      /* number: bytes of credit */
    RESPB_FRAME_GOAWAY = 8,      /* the connection ends; number: the code; its value: the reason */
    RESPB_FRAME_FRAGMENT = 9,    /* number: 1 when no slice follows; its value: the slice */
    RESPB_FRAME_UNKNOWN = 10,    /* of a later version: a server answers an error and goes on */
    RESPB_FRAME_IGNORED = 11,    /* of a later version: to be passed over in silence */
    RESPB_FRAME_REPLY = 12,      /* the answer to a request */
    RESPB_FRAME_PUSH = 13        /* answers nothing */
};

/* The command of a frame that has none, or whose name has not been looked up. */
#define RESPB_NO_COMMAND UINT16_MAX

/* One whole frame. */
typedef struct respb_frame {
    const char *data; /* its first byte, in the buffer that was decoded */
    uint32_t len;     /* its bytes */
    uint32_t first;   /* index of its first value in respb_batch.values */
    uint32_t count;   /* its values there */
    uint32_t number;  /* of a control frame; of FRAME_FRAGMENT 1 for the last slice */
    uint16_t channel; /* 0 in RESP */
    uint16_t opcode;  /* 0 in RESP; 0xF000 for a module's command */
    uint16_t command; /* of FRAME_CORE and FRAME_MODULE: for respb_command_get */
    uint8_t kind;
    uint8_t options; /* of FRAME_CORE and FRAME_MODULE: the option bits of the layout, 0 where it has none */
} respb_frame;

/* The fewest values that an array must have room for. */
#define RESPB_VALUES_MIN 8

/* Where a decoder puts what it finds. The caller sets the two arrays and their capacities and sets everything else to 0
 * once; after that the fields are the library's to write, except where it says so. The arrays may be replaced between calls by
 * others with the same contents.
 *
 * A decoder keeps the values of a frame that is not yet whole in values[partial .. values_len), and the next call
 * moves them to the front. Everything else of a batch is gone at the next call. */
typedef struct respb_batch {
    respb_frame *frames;
    size_t frames_capacity; /* at least 1 */
    size_t frames_len;      /* whole frames */
    respb_value *values;
    size_t values_capacity; /* at least RESPB_VALUES_MIN, below UINT32_MAX */
    size_t values_len;
    size_t partial;         /* first value of the frame that is not whole */
    size_t taken;           /* values of that frame that were taken; with a whole frame, of frames[0] */
    size_t consumed;        /* bytes of whole frames: the next call begins behind them */
    size_t need;            /* RESPB_INCOMPLETE: bytes of the next frame that must be there before a call makes progress */
    uint32_t error;         /* RESPB_INVALID: a number for respb_error_name and respb_error_text */
    uint32_t error_offset;  /* of the field that is wrong, from the start of its frame, which is at `consumed` */
    uint16_t error_channel; /* the channel to answer on */
    uint16_t reserved[3];   /* 0 */
} respb_batch;

/* For RESPB_FULL without a whole frame: the caller has used the values of the frame that is not whole and lets go of them, so
 * that a frame of any size goes through an array of any size. Returns how many there were. (The other way out is a larger array:
 * copy values_len values to it and set `values` and `values_capacity`.) */
size_t respb_batch_take(respb_batch *batch);

/* ---- Decoding ---------------------------------------------------------------------------------------------------- */

/* What a decoder keeps between calls. Everything in the next three structs is the library's; they are here for their size. */
typedef struct respb_kept {
    size_t held;            /* bytes that were there of the frame that is not whole: no fewer may come */
    size_t relative;        /* values of that frame that say where their bytes are by an offset */
    const char *base;       /* where that frame began at the last call, for values that do not */
    uint32_t error, error_offset;
    uint16_t error_channel;
    uint8_t protocol, first_frame;
} respb_kept;

/* Where a decoder of requests stands in a frame. 0 everywhere at its start. */
typedef struct respb_walk {
    size_t at;        /* what is read next */
    size_t end;       /* of the arguments of ARGV and `args` */
    size_t items_at;  /* of a list: its first item, and where handing out a column stands */
    size_t column_at;
    uint32_t arguments; /* so far, the name included */
    uint32_t left;      /* items of the list to come */
    uint8_t field, sub, bit, inside, options;
} respb_walk;

/* The same for RESP. */
typedef struct respb_lines {
    size_t at;
    size_t searched; /* how far the end of a line was looked for */
    uint32_t arguments, left;
} respb_lines;

typedef struct respb_request_decoder {
    respb_kept kept;
    respb_limits limits;
    respb_walk walk;
    respb_lines lines;
    size_t visible_max; /* bytes of a frame that the straight code may look at; 0 where limits are too low for it */
} respb_request_decoder;

typedef struct respb_reply_decoder {
    respb_kept kept;
    respb_limits limits;
    size_t at;
    size_t searched;
    uint8_t depth, owed, in_text, push;
    uint8_t levels[RESPB_NESTING_MAX]; /* flags of each aggregate that is open */
    uint64_t left[RESPB_NESTING_MAX];  /* and its elements to come */
} respb_reply_decoder;

/* Makes a decoder of what clients send, at the start of a frame. `size` is sizeof *decoder; `limits` may be null for the
 * default. Initialising again starts anew: when the protocol changes, set the batch's values_len, partial and taken to 0 too. */
respb_status respb_request_decoder_init(respb_request_decoder *decoder, size_t size, int protocol,
                                        const respb_limits *limits);

/* Other limits from the next frame on. What `batch` (null: no batch) holds of a frame that is not whole is dropped and
 * handed out again; RESPB_EINVAL if some of it was taken. */
respb_status respb_request_decoder_limits(respb_request_decoder *decoder, const respb_limits *limits, respb_batch *batch);

/* Decodes the frames at `data` until they end or an array is full. `data` begins at the first byte of a frame: at the bytes
 * behind `consumed` of the call before, with more behind them, at the same place or another.
 *
 * RESPB_OK          all of `data` is consumed.
 * RESPB_INCOMPLETE  a frame follows that is not whole. What was found of it is kept and is not looked at again.
 * RESPB_FULL        frames: use the frames and call again. values: the same; without a whole frame see respb_batch_take.
 * RESPB_INVALID     the frame at `consumed` is wrong; those before it are good. The decoder says so from now on.
 *
 * Except with RESPB_EINVAL the batch is valid after each of them. */
respb_status respb_decode_requests(respb_request_decoder *decoder, const void *data, size_t len, respb_batch *batch);

/* The same for what servers send. */
respb_status respb_reply_decoder_init(respb_reply_decoder *decoder, size_t size, int protocol,
                                      const respb_limits *limits);
respb_status respb_decode_replies(respb_reply_decoder *decoder, const void *data, size_t len, respb_batch *batch);

/* ---- The protocol of a connection -------------------------------------------------------------------------------- */

enum {
    RESPB_DETECT_MORE = 0,  /* not to be told yet */
    RESPB_DETECT_RESP = 3,
    RESPB_DETECT_RESPB = 4,
    RESPB_DETECT_HTTP = 5,
    RESPB_DETECT_TLS = 6,
    RESPB_DETECT_UNKNOWN = -1 /* answer an error and close */
};

/* Tells a connection's protocol by its first bytes (spec section 7.1). *skip, unless null, becomes the number of blanks
 * before them, which are to be dropped. */
int respb_detect(const void *data, size_t len, size_t *skip);

/* ---- Errors of the wire ------------------------------------------------------------------------------------------ */

enum {
    RESPB_ERR_MULTIBULK_LENGTH = 1,
    RESPB_ERR_MULTIBULK_LINE = 2,
    RESPB_ERR_EXPECTED_BULK = 3,
    RESPB_ERR_BULK_LENGTH = 4,
    RESPB_ERR_BULK_LINE = 5,
    RESPB_ERR_BULK_END = 6,
    RESPB_ERR_INLINE_TOO_LONG = 7,
    RESPB_ERR_UNBALANCED_QUOTES = 8,
    RESPB_ERR_TOO_MANY_ARGUMENTS = 9,
    RESPB_ERR_UNAUTHENTICATED_ARGUMENTS = 10,
    RESPB_ERR_ARGUMENT_TOO_LONG = 11,
    RESPB_ERR_UNAUTHENTICATED_ARGUMENT = 12,
    RESPB_ERR_FRAME_TOO_LONG = 13,
    RESPB_ERR_UNKNOWN_TYPE = 14,
    RESPB_ERR_LINE_TOO_LONG = 15,
    RESPB_ERR_BAD_LINE = 16,
    RESPB_ERR_BAD_NUMBER = 17,
    RESPB_ERR_BAD_LENGTH = 18,
    RESPB_ERR_BAD_BOOL = 19,
    RESPB_ERR_BAD_VERBATIM = 20,
    RESPB_ERR_TOO_DEEP = 21,
    RESPB_ERR_TOO_MANY_ELEMENTS = 22,
    RESPB_ERR_MISPLACED = 23,
    RESPB_ERR_BAD_STREAM = 24,
    RESPB_ERR_UNKNOWN_OPCODE = 25,
    RESPB_ERR_WRONG_DIRECTION = 26,
    RESPB_ERR_UNKNOWN_BIT = 27,
    RESPB_ERR_EXCLUSIVE_BITS = 28,
    RESPB_ERR_MISSING_BIT = 29,
    RESPB_ERR_BAD_ENUM = 30,
    RESPB_ERR_LENGTH_MISMATCH = 31,
    RESPB_ERR_EMPTY_COMMAND = 32,
    RESPB_ERR_NOT_ONE_COMMAND = 33,
    RESPB_ERR_BAD_CONTROL = 34,
    RESPB_ERR_UNKNOWN_TAG = 35,
    RESPB_ERR_UNKNOWN_PROTOCOL = 36,
    RESPB_ERR_ZERO_STREAM = 37
};

/* The name in the specification ("bulk-length") and the text of the reply behind "ERR " ("Protocol error: ..."). Constants,
 * ended by a zero byte; null for a number that there is not. */
const char *respb_error_name(uint32_t error);
const char *respb_error_text(uint32_t error);

/* ---- Encoding requests and control frames ------------------------------------------------------------------------ */

enum {
    RESPB_FORM_RESP = 0,        /* a RESP array */
    RESPB_FORM_EXACT = 1,       /* RESPB: the typed frame that says exactly these bytes, otherwise ARGV; for converters */
    RESPB_FORM_FOLD = 2,        /* RESPB: the typed frame that means this, otherwise ARGV; for clients */
    RESPB_FORM_ARGV = 3,        /* RESPB: ARGV */
    RESPB_FORM_PASSTHROUGH = 4  /* RESPB: a RESP array inside a frame */
};

/* Encodes a request. `name`, unless null, stands before the arguments, as with the arguments of a typed frame; otherwise the
 * first argument is the name. Arguments are BYTES, INTEGER, DOUBLE or KEYWORD. Returns the length of the frame and writes as
 * much of it as there is room for: it is whole when the length is at most `capacity`. 0 when there is no frame that says this.
 * `buffer` may be null when `capacity` is 0, and must not hold any of the arguments. */
size_t respb_encode_request(int form, uint16_t channel, const char *name, const respb_value *args, size_t count,
                            void *buffer, size_t capacity);

/* The control frames, in the same manner; RESPB only. A slice has at most 65,536 bytes. */
size_t respb_encode_close(uint16_t channel, uint16_t code, const void *reason, size_t len, void *buffer, size_t capacity);
size_t respb_encode_cancel(uint16_t channel, uint32_t sequence, void *buffer, size_t capacity);
size_t respb_encode_window(uint16_t channel, uint32_t more, void *buffer, size_t capacity);
size_t respb_encode_goaway(uint16_t code, const void *reason, size_t len, void *buffer, size_t capacity);
size_t respb_encode_fragment(uint16_t channel, int last, const void *slice, size_t len, void *buffer, size_t capacity);

/* ---- Encoding replies -------------------------------------------------------------------------------------------- */

/* Appends replies to a buffer of the caller, one value after the other; an aggregate is complete with its last element.
 * In memory of the caller; its fields are the library's. It keeps a pointer to the buffer from its initialisation on, and to
 * nothing else. */
typedef struct respb_writer {
    char *buffer;
    size_t capacity, len;
    size_t text_at; /* where the streamed text that is open has its length, plus 1; 0: none is open */
    uint16_t channel;
    uint8_t protocol, depth;
    struct respb_open {
        uint64_t elements; /* to come; of a streamed aggregate, so far */
        size_t at;         /* where it has its count (RESPB) or begins (RESP) */
        uint8_t kind, streamed, owed; /* owed: an attribute stands there whose value is to come (RESP) */
    } open[RESPB_NESTING_MAX];
} respb_writer;

/* `size` is sizeof *writer. `buffer` may be null when `capacity` is 0. The writer begins on channel 0. */
respb_status respb_writer_init(respb_writer *writer, size_t size, int protocol, void *buffer, size_t capacity);

/* Goes on in another buffer, of which `len` bytes are written: after sending, with 0; after growing, with what was written.
 * Only between replies, as are the next two; inside an aggregate they answer RESPB_EINVAL. */
respb_status respb_writer_buffer(respb_writer *writer, void *buffer, size_t capacity, size_t len);
/* Replies from here on belong to another channel; without effect in RESP. */
respb_status respb_writer_channel(respb_writer *writer, uint16_t channel);
/* Replies from here on are in another protocol (HELLO). */
respb_status respb_writer_protocol(respb_writer *writer, int protocol);

/* Bytes written, those included for which there was no room. More than the capacity means that the buffer is too small and
 * that the replies in it from the one that did not fit on are void. */
size_t respb_writer_len(const respb_writer *writer);
/* Forgets all but the first `len` bytes, and what is open: a reply given up half-way. */
respb_status respb_writer_truncate(respb_writer *writer, size_t len);

/* Each appends one value: RESPB_OK, or RESPB_FULL when the buffer is too small. A line end in a simple string and letters in a
 * big number are RESPB_EINVAL: a RESP client would read them as another reply. */
respb_status respb_write_simple(respb_writer *writer, const void *text, size_t len);
respb_status respb_write_error(respb_writer *writer, const void *text, size_t len);
respb_status respb_write_bulk(respb_writer *writer, const void *data, size_t len);
respb_status respb_write_integer(respb_writer *writer, int64_t integer);
respb_status respb_write_double(respb_writer *writer, double number);
respb_status respb_write_boolean(respb_writer *writer, int boolean);
respb_status respb_write_null(respb_writer *writer);
/* Opens RESPB_ARRAY, RESPB_MAP, RESPB_SET, RESPB_PUSH or RESPB_ATTRIBUTE of `count` elements (pairs for maps and attributes).
 * -1, for arrays, maps and sets: the count is known only at respb_write_close, and is written then; inside a pair of a map that is
 * RESPB_EINVAL, as is a push inside anything. */
respb_status respb_write_open(respb_writer *writer, int kind, int64_t count);
respb_status respb_write_close(respb_writer *writer);
/* Appends values as a decoder of replies hands them out, of any kind; stops at the first that it cannot write. */
respb_status respb_write_values(respb_writer *writer, const respb_value *values, size_t count);

#ifndef RESPB_NO_TYPED
/* ---- The command table ------------------------------------------------------------------------------------------- */

/* Version of the command table that opcodes and layouts come from; HELLO announces it with the name and the hash. */
#define RESPB_TABLE_VERSION 1
const char *respb_table_name(void);
const char *respb_table_hash(void);

/* Flags of a command, by the names that COMMAND INFO prints. */
enum {
    RESPB_FLAG_WRITE = 1 << 0,
    RESPB_FLAG_READONLY = 1 << 1,
    RESPB_FLAG_DENYOOM = 1 << 2,
    RESPB_FLAG_ADMIN = 1 << 3,
    RESPB_FLAG_PUBSUB = 1 << 4,
    RESPB_FLAG_NOSCRIPT = 1 << 5,
    RESPB_FLAG_BLOCKING = 1 << 6,
    RESPB_FLAG_LOADING = 1 << 7,
    RESPB_FLAG_STALE = 1 << 8,
    RESPB_FLAG_FAST = 1 << 12,
    RESPB_FLAG_NO_AUTH = 1 << 13,
    RESPB_FLAG_NO_MULTI = 1 << 18
};

/* One command or subcommand; a constant of the library. */
typedef struct respb_command {
    const char *name;        /* in capitals; a subcommand's own word */
    int32_t arity;           /* arguments with the name; negative: at least as many */
    uint32_t flags;          /* RESPB_FLAG_...; all of them by respb_flag_name */
    uint16_t id;             /* its number here; not the same in another table version */
    uint16_t container;      /* of a subcommand, otherwise RESPB_NO_COMMAND */
    uint16_t opcode;         /* 0xF000 for a module's; a subcommand has its container's */
    uint16_t module;         /* the module and the command in it, for opcode 0xF000 */
    uint16_t module_command;
    int16_t key_first;       /* position of the first key, 0 where there is none */
    int16_t key_last;        /* of the last; negative counts from the end */
    int16_t key_step;
} respb_command;

/* How many there are; ids are below. */
uint16_t respb_command_count(void);
/* Null for an id that there is not. */
const respb_command *respb_command_get(uint16_t id);
/* Look-up; names in any case. Null where there is none. */
const respb_command *respb_command_by_name(const void *name, size_t len);
const respb_command *respb_command_by_opcode(uint16_t opcode);
const respb_command *respb_command_by_module(uint16_t module, uint16_t command);
const respb_command *respb_subcommand(uint16_t container, const void *name, size_t len);
/* The layout in the notation of the specification's annex A, such as "key:str16! value:blob32"; empty for a frame that is only
 * a header, null for an id that there is not. */
const char *respb_command_layout(uint16_t id);
/* The name of flag `1 << bit`, null when there is no such flag. */
const char *respb_flag_name(uint32_t bit);
#endif

#ifdef __cplusplus
}
#endif

#endif
