/* table.h: the command table: its structs, look-up, and the functions of respb.h that show it.
 *
 * Owns the form of the arrays; their contents are generated into respb_table.h. */
#ifndef RESPB_TABLE_H
#define RESPB_TABLE_H

enum { STR16, BLOB32, I64, F64, U16, U8, ENUM, LIST, OPTS8 };

/* Layouts that the straight code knows, by their fields: S str16, B blob32, I i64, O options, L a list of what follows. Others
 * are walked. */
enum {
    SHAPE_WALKED,
    SHAPE_EMPTY,
    SHAPE_S,
    SHAPE_L,
    SHAPE_SBO,
    SHAPE_SL,
    SHAPE_SS,
    SHAPE_SB,
    SHAPE_SI,
    SHAPE_SII,
    SHAPE_SSBO,
    SHAPE_LSB,
    SHAPE_SLSB,
    SHAPE_SO,
    SHAPE_SOLDS,
    SHAPE_SSLSB
};

struct field {
    uint16_t words; /* keywords before it in the argument form: where they stand in WORDS, 0 for none */
    uint16_t sub;   /* LIST, OPTS8: its entry there; ENUM: the first of its VALUES, which is how many follow */
    uint8_t kind, key;
};

struct list {
    uint16_t items; /* the first of its fields */
    uint8_t width, counted, transposed, min;
};

struct options {
    uint16_t bits, sets; /* the first of each */
    uint8_t bits_len, sets_len;
};

struct bit {
    uint16_t words, fields;
    uint8_t width, requires;
};

struct layout {
    uint16_t fields;
    uint8_t len; /* ARGS_LAYOUT: arguments as they are */
    uint8_t shape;
};

#define ARGS_LAYOUT 255

/* What a frame of an opcode says of itself, as it stands in respb_frame. */
struct core {
    uint16_t command;
    uint8_t kind, options;
};

#define NO_ENTRY {RESPB_NO_COMMAND, 0, 0}

#include "../respb_table.h"

static unsigned upper(unsigned letter) { return letter >= 'a' && letter <= 'z' ? letter - 32 : letter; }

static int same_word(const char *text, const char *word, size_t len) {
    for (; len > 0; text++, word++, len--) {
        if (upper((unsigned char)*text) != (unsigned char)*word) return 0;
    }
    return 1;
}

/* The command or subcommand of a name in any case. */
static const respb_command *find(uint16_t container, const void *name, size_t len) {
    const unsigned char *at = (const unsigned char *)name;
    uint32_t hash = 0x811C9DC5u ^ (container == RESPB_NO_COMMAND ? 0u : container + 1u);
    size_t i;
    if (!name || len == 0 || len > NAME_MAX_LEN) return NULL;
    for (i = 0; i < len; i++) hash = (hash ^ upper(at[i])) * 0x01000193u;
    hash ^= hash >> 15;
    /* The table is at most half full: this ends. */
    for (; NAMES[hash & NAMES_MASK] != RESPB_NO_COMMAND; hash++) {
        const respb_command *command = &COMMANDS[NAMES[hash & NAMES_MASK]];
        if (command->container == container && strlen(command->name) == len &&
            same_word((const char *)name, command->name, len)) {
            return command;
        }
    }
    return NULL;
}

const char *respb_table_name(void) { return TABLE_NAME; }

const char *respb_table_hash(void) { return TABLE_HASH; }

uint16_t respb_command_count(void) { return COMMANDS_LEN; }

const respb_command *respb_command_get(uint16_t id) { return id < COMMANDS_LEN ? &COMMANDS[id] : NULL; }

const respb_command *respb_command_by_name(const void *name, size_t len) { return find(RESPB_NO_COMMAND, name, len); }

const respb_command *respb_command_by_opcode(uint16_t opcode) {
    return opcode <= CORE_LAST ? respb_command_get(CORE[opcode].command) : NULL;
}

const respb_command *respb_command_by_module(uint16_t module, uint16_t command) {
    if (module >= MODULES_LEN || command >= MODULES[module + 1] - MODULES[module]) return NULL;
    return respb_command_get(MODULE_COMMANDS[MODULES[module] + command]);
}

const respb_command *respb_subcommand(uint16_t container, const void *name, size_t len) {
    return container == RESPB_NO_COMMAND ? NULL : find(container, name, len);
}

const char *respb_command_layout(uint16_t id) { return id < COMMANDS_LEN ? LAYOUT_TEXTS[id] : NULL; }

const char *respb_flag_name(uint32_t bit) {
    return bit < sizeof FLAG_NAMES / sizeof *FLAG_NAMES ? FLAG_NAMES[bit] : NULL;
}

#endif
