/* encode.c: see encode.h. Every buffer has exactly the size that the library asked for, and then one byte less, so that
 * a sanitizer sees a byte too many. */
#include "encode.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "counting.h"

static void same(const struct vector *vector, const char *what, const struct bytes *got, const char *wanted,
                 size_t len) {
    expect(got->len == len, vector, what, (unsigned long)got->len);
    expect(memcmp(got->data, wanted, len) == 0, vector, what, 0);
}

static struct bytes request(const struct vector *vector, int form, const char *name, const respb_value *args,
                            size_t count) {
    struct bytes out;
    size_t again;
    lib_enter();
    out.len = respb_encode_request(form, (uint16_t)vector->channel, name, args, count, NULL, 0);
    lib_leave();
    expect(out.len > 0, vector, "no length", (unsigned long)form);
    out.data = (char *)malloc(out.len);
    lib_enter();
    again = respb_encode_request(form, (uint16_t)vector->channel, name, args, count, out.data, out.len - 1);
    again += respb_encode_request(form, (uint16_t)vector->channel, name, args, count, out.data, out.len);
    lib_leave();
    expect(again == 2 * out.len, vector, "another length", (unsigned long)again);
    return out;
}

/* Arguments with their quotes resolved; texts of quoted ones are on the heap. */
static respb_value *resolved(const struct run *run, struct bytes *texts) {
    respb_value *args = (respb_value *)malloc((run->frame.count + 1) * sizeof *args);
    size_t i, at = 0;
    texts->data = (char *)malloc(run->frame.len + 1);
    for (i = 0; i < run->frame.count; i++) {
        args[i] = run->batch.values[run->frame.first + i];
        if (args[i].kind == RESPB_QUOTED) {
            size_t len;
            lib_enter();
            len = respb_value_text(&args[i], texts->data + at, run->frame.len - at);
            lib_leave();
            args[i] = respb_bytes(texts->data + at, len);
            at += len;
        }
    }
    return args;
}

#ifndef RESPB_NO_RESP
/* The argument form in RESP, decoded, and encoded for RESPB; folded when the vector says so, and then exactly as well, which
 * must give ARGV. */
static void through_resp(const struct vector *vector, const struct bytes *argv) {
    struct vector form;
    struct run run;
    struct bytes out;
    memset(&form, 0, sizeof form);
    form.protocol = RESPB_PROTOCOL_RESP3;
    form.request = form.default_limits = 1;
    run_init(&run, &form, 64, 1);
    expect(run_feed(&run, argv->data, argv->len) == RESPB_OK, vector, "argument form", 0);
    if (vector->folded) {
        struct bytes wanted = request(vector, RESPB_FORM_ARGV, NULL, run.batch.values, run.frame.count);
        out = request(vector, RESPB_FORM_EXACT, NULL, run.batch.values, run.frame.count);
        same(vector, "not folded", &out, wanted.data, wanted.len);
        free(wanted.data);
        free(out.data);
    }
    out = request(vector, vector->folded ? RESPB_FORM_FOLD : RESPB_FORM_EXACT, NULL, run.batch.values,
                  run.frame.count);
    same(vector, "from the argument form", &out, vector->canonical.data, vector->canonical.len);
    free(out.data);
    run_free(&run);
}

/* Name and keywords in lower case: a client's form folds them, a converter's keeps them. */
static void folded(const struct vector *vector, const respb_value *args, size_t count) {
    respb_value *lower = (respb_value *)malloc((count + 1) * sizeof *lower);
    char name[64], words[64 * 16];
    size_t i, at = 0;
    struct bytes out;
    for (i = 0; vector->command[i]; i++) name[i] = (char)tolower((unsigned char)vector->command[i]);
    name[i] = 0;
    for (i = 0; i < count; i++) {
        lower[i] = args[i];
        if (args[i].kind == RESPB_KEYWORD && at + args[i].len < sizeof words) {
            size_t j;
            lower[i] = respb_bytes(words + at, args[i].len);
            for (j = 0; j < args[i].len; j++) words[at++] = (char)tolower((unsigned char)args[i].value.data[j]);
        }
    }
    out = request(vector, RESPB_FORM_FOLD, name, lower, count);
    /* Two keywords of different options may need their places: then it is ARGV, with no loss. */
    if ((unsigned char)out.data[0] != 0xF0 || out.data[1] != 1) {
        same(vector, "folded", &out, vector->canonical.data, vector->canonical.len);
    }
    free(out.data);
    out = request(vector, RESPB_FORM_EXACT, name, lower, count);
    expect((unsigned char)out.data[0] == 0xF0 && out.data[1] == 1, vector, "a typed frame for a lower-case name", 0);
    free(out.data);
    free(lower);
}

static void respb_request_again(const struct vector *vector, const struct run *run, const respb_value *args) {
    const char *name = vector->command[0] ? vector->command : NULL;
    size_t count = run->frame.count;
    struct bytes out = request(vector, RESPB_FORM_RESP, name, args, count);
    /* What was folded decodes to another argument form. */
    if (!vector->folded) same(vector, "argument form", &out, vector->argv.data, vector->argv.len);
    through_resp(vector, &vector->argv);
    free(out.data);
    if (!name) return;
    out = request(vector, RESPB_FORM_EXACT, name, args, count);
    same(vector, "from typed arguments", &out, vector->canonical.data, vector->canonical.len);
    free(out.data);
    folded(vector, args, count);
}
#else
/* Without RESP and the table there is ARGV. */
static void respb_request_again(const struct vector *vector, const struct run *run, const respb_value *args) {
    struct bytes out = request(vector, RESPB_FORM_FOLD, NULL, args, run->frame.count);
    same(vector, "encoded", &out, vector->canonical.data, vector->canonical.len);
    free(out.data);
}
#endif

static void control_again(const struct vector *vector, const struct run *run) {
    const respb_frame *frame = &run->frame;
    respb_value value = respb_bytes(NULL, 0);
    char out[65536 + 64];
    size_t len = 0;
    struct bytes got;
    if (frame->count) value = run->batch.values[frame->first];
    if (value.len > 65536) return;
    lib_enter();
    switch (frame->kind) {
    case RESPB_FRAME_CLOSE:
        len = respb_encode_close(frame->channel, (uint16_t)frame->number, value.value.data, value.len, out, sizeof out);
        break;
    case RESPB_FRAME_GOAWAY:
        if (frame->channel != 0) {
            lib_leave();
            return;
        }
        len = respb_encode_goaway((uint16_t)frame->number, value.value.data, value.len, out, sizeof out);
        break;
#ifndef RESPB_CHANNELS_ONLY
    case RESPB_FRAME_CANCEL: len = respb_encode_cancel(frame->channel, frame->number, out, sizeof out); break;
    case RESPB_FRAME_WINDOW: len = respb_encode_window(frame->channel, frame->number, out, sizeof out); break;
    case RESPB_FRAME_FRAGMENT:
        len = respb_encode_fragment(frame->channel, (int)frame->number, value.value.data, value.len, out, sizeof out);
        break;
#endif
    default: lib_leave(); return;
    }
    lib_leave();
    got.data = out;
    got.len = len;
    same(vector, "control frame", &got, vector->canonical.data, vector->canonical.len);
}

static struct bytes reply(const struct vector *vector, int protocol, const respb_value *values, size_t count) {
    respb_writer writer;
    respb_status status;
    struct bytes out;
    int pass;
    out.data = NULL;
    out.len = 0;
    for (pass = 0; pass < 3; pass++) {
        /* Nothing, one byte less than it takes, what it takes. */
        size_t capacity = pass == 1 ? out.len - 1 : out.len;
        lib_enter();
        status = respb_writer_init(&writer, sizeof writer, protocol, out.data, capacity);
        expect(status == RESPB_OK, vector, "writer", 0);
        respb_writer_channel(&writer, (uint16_t)vector->channel);
        status = respb_write_values(&writer, values, count);
        lib_leave();
        expect(status == (pass == 2 || (pass == 1 && capacity == out.len) ? RESPB_OK : RESPB_FULL), vector,
               "writing", (unsigned long)status);
        expect(pass == 0 || respb_writer_len(&writer) == out.len, vector, "another length", 0);
        if (pass == 0) {
            out.len = respb_writer_len(&writer);
            out.data = (char *)malloc(out.len);
        }
    }
    return out;
}

#ifndef RESPB_NO_RESP
/* A reply of RESPB in RESP3, and back again. */
static void reply_through_resp(const struct vector *vector, const respb_value *values, size_t count) {
    struct bytes lines, out;
    struct vector form;
    struct run again;
    if (vector->protocol != RESPB_PROTOCOL_RESPB) return;
    lines = reply(vector, RESPB_PROTOCOL_RESP3, values, count);
    memset(&form, 0, sizeof form);
    form.protocol = RESPB_PROTOCOL_RESP3;
    respb_limits_default(&form.limits);
    form.limits.inline_bytes_max = 1 << 20;
    run_init(&again, &form, 64, 1);
    expect(run_feed(&again, lines.data, lines.len) == RESPB_OK, vector, "through RESP3", 0);
    out = reply(vector, RESPB_PROTOCOL_RESPB, again.batch.values, again.frame.count);
    same(vector, "through RESP3", &out, vector->canonical.data, vector->canonical.len);
    free(out.data);
    free(lines.data);
    run_free(&again);
}
#endif

static void reply_again(const struct vector *vector, const struct run *run) {
    const respb_value *values = run->batch.values + run->frame.first;
    struct bytes out = reply(vector, vector->protocol, values, run->frame.count);
    same(vector, "encoded", &out, vector->canonical.data, vector->canonical.len);
    free(out.data);
#ifndef RESPB_NO_RESP
    reply_through_resp(vector, values, run->frame.count);
#endif
}

void encode_again(const struct vector *vector, const struct run *run) {
    struct bytes texts;
    respb_value *args;
    if (!vector->canonical.data) return;
    if (!vector->request && (run->frame.kind == RESPB_FRAME_REPLY || run->frame.kind == RESPB_FRAME_PUSH)) {
        reply_again(vector, run);
        return;
    }
    if (run->frame.kind > RESPB_FRAME_PASSTHROUGH) {
        control_again(vector, run);
        return;
    }
    args = resolved(run, &texts);
    if (vector->protocol == RESPB_PROTOCOL_RESPB) {
        respb_request_again(vector, run, args);
    } else if (run->frame.count > 0) {
        struct bytes out = request(vector, RESPB_FORM_RESP, NULL, args, run->frame.count);
        same(vector, "encoded", &out, vector->canonical.data, vector->canonical.len);
        free(out.data);
    }
    free(args);
    free(texts.data);
}

void encode_only(const struct vector *vector) {
    respb_value *values = (respb_value *)malloc((vector->values_len + 1) * sizeof *values);
    struct bytes out;
    size_t i;
    for (i = 0; i < vector->values_len; i++) {
        const struct expected *wanted = &vector->values[i];
        values[i] = wanted->text.data ? respb_bytes(wanted->text.data, wanted->text.len) : respb_integer(wanted->integer);
        values[i].kind = (uint8_t)wanted->kind;
        if (wanted->kind == RESPB_DOUBLE) memcpy(&values[i].value.number, &wanted->bits, sizeof wanted->bits);
        memcpy(values[i].format, wanted->format, 3);
    }
    out = reply(vector, vector->protocol, values, vector->values_len);
    same(vector, "encoded", &out, vector->canonical.data, vector->canonical.len);
    free(out.data);
    free(values);
}
