/* number.h: numbers as text (specification, section E.3): the one spelling that is canonical, and nothing else.
 *
 * Owns the only use of the C library's own conversions; they may follow a locale, so no decimal point is ever given to them or
 * taken from them. Allocates nothing. */
#ifndef RESPB_NUMBER_H
#define RESPB_NUMBER_H

#if defined(RESPB_NO_TYPED) && defined(RESPB_NO_RESP)
#define RESPB_NO_DOUBLE_TEXT
#else
#include <stdio.h>
#include <stdlib.h>
#endif

/* The longest texts: a sign and 19 digits; 17 digits with sign, point, zeros before them or an exponent. */
#define INT_TEXT_MAX 20
#define DOUBLE_TEXT_MAX 32
/* Digits that decide a double: of more than these it only matters whether one is not 0. */
#define DIGITS_MAX 780

static int is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/* An optional `-` and digits: no `+`, no leading zero, no `-0`. */
static int parse_integer(const char *text, size_t len, int64_t *number) {
    size_t at = 0;
    int negative = len > 0 && text[0] == '-';
    uint64_t value = 0;
    if (negative) text++, len--;
    if (len == 0 || len > INT_TEXT_MAX - 1) return 0;
    if (text[0] == '0' && (len > 1 || negative)) return 0;
    for (; at < len; at++) {
        if (!is_digit(text[at])) return 0;
        value = value * 10 + (uint64_t)(text[at] - '0'); /* 19 digits are below 2^64 */
    }
    if (value > (uint64_t)INT64_MAX + (uint64_t)negative) return 0;
    *number = signed64(negative ? 0 - value : value);
    return 1;
}

/* A sign, or none, and digits. */
static int is_big(const char *text, size_t len) {
    if (len > 0 && (text[0] == '-' || text[0] == '+')) text++, len--;
    if (len == 0) return 0;
    for (; len > 0; text++, len--) {
        if (!is_digit(*text)) return 0;
    }
    return 1;
}

/* Writes an integer; returns its length. */
static size_t integer_text(int64_t number, char *out) {
    char digits[INT_TEXT_MAX];
    size_t at = sizeof digits, len = 0;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0) out[len++] = '-';
    memcpy(out + len, digits + at, sizeof digits - at);
    return len + sizeof digits - at;
}

/* Doubles as text: what typed frames and RESP need, and Channels alone does not. */
#ifndef RESPB_NO_DOUBLE_TEXT

/* Digits and a power of ten as a double. `digits` has room for an exponent behind `count` of them. */
static double power_of_ten(char *digits, size_t count, long exponent) {
    if (exponent > 99999) exponent = 99999;
    if (exponent < -99999) exponent = -99999;
    sprintf(digits + count, "e%ld", exponent);
    return strtod(digits, NULL);
}

/* Digits, a fraction, an exponent: all of the text, of any length. */
static int parse_decimal(const char *text, size_t len, double *number) {
    char digits[DIGITS_MAX + 16];
    size_t at = 0, count = 0, seen = 0;
    long exponent = 0, given = 0;
    int negative = 0, point = 0, lost = 0;
    if (at < len && (text[at] == '-' || text[at] == '+')) negative = text[at++] == '-';
    for (; at < len && (is_digit(text[at]) || (text[at] == '.' && !point)); at++) {
        if (text[at] == '.') {
            point = 1;
            continue;
        }
        seen++;
        if (count == 0 && text[at] == '0') {
            exponent -= point;
        } else if (count < DIGITS_MAX) {
            digits[count++] = text[at];
            exponent -= point;
        } else {
            lost |= text[at] != '0';
            exponent += !point;
        }
    }
    if (seen == 0) return 0;
    if (at < len && (text[at] == 'e' || text[at] == 'E')) {
        int below = 0;
        if (++at < len && (text[at] == '-' || text[at] == '+')) below = text[at++] == '-';
        if (at == len) return 0;
        for (; at < len && is_digit(text[at]); at++) {
            if (given < 100000000) given = given * 10 + (text[at] - '0');
        }
        exponent += below ? -given : given;
    }
    if (at < len) return 0;
    if (lost) digits[count++] = '1', exponent--;
    if (count == 0) digits[count++] = '0', exponent = 0;
    *number = power_of_ten(digits, count, exponent);
    if (negative) *number = -*number;
    return 1;
}

/* `count` significant digits of a positive number, rounded, and the exponent of the last of them. */
static long rounded(double number, int count, char *digits) {
    char text[48], *at = text;
    int found = 0;
    sprintf(text, "%.*e", count - 1, number);
    for (; *at != 'e'; at++) {
        if (is_digit(*at)) digits[found++] = *at;
    }
    return strtol(at + 1, NULL, 10) - (count - 1);
}

/* The shortest digits that read back as the same positive number, without zeros at their end. A number of 15 digits survives the
 * way through a normal double, so that for those fewer need not be tried: they are 15 with zeros. */
static long shortest(double number, char *digits, size_t *len) {
    int count = number < 2.2250738585072014e-308 ? 1 : 15;
    long exponent;
    for (;; count++) {
        exponent = rounded(number, count, digits);
        if (count == 17 || power_of_ten(digits, (size_t)count, exponent) == number) break;
        /* Above a power of two doubles lie twice as far apart as below: the next digits up may still be this number. */
        if (count == 16 && digits[15] < '9') {
            digits[15]++;
            if (power_of_ten(digits, 16, exponent) == number) break;
        }
    }
    for (; count > 1 && digits[count - 1] == '0'; count--) exponent++;
    *len = (size_t)count;
    return exponent;
}

/* The same for one of at most 15 digits, as people write them, by a product and a quotient. Both numbers of the quotient are exact, so
 * that its digits read back as it, and no other 15 digits do. 0 where it is not such a one. */
static int short_digits(double number, char *digits, size_t *len, long *exponent) {
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int whole = 0;
    int64_t all;
    if (number >= 1e15) return 0;
    while (number >= tens[whole]) whole++;
    all = (int64_t)(number * tens[15 - whole] + 0.5);
    if (all == 0 || (double)all / tens[15 - whole] != number) return 0;
    for (*exponent = whole - 15; all % 10 == 0; all /= 10) ++*exponent;
    *len = integer_text(all, digits);
    return 1;
}

static size_t zeros(char *out, size_t len, long count) {
    for (; count > 0; count--) out[len++] = '0';
    return len;
}

/* Lays out `n` digits whose last one counts 10^k. */
static size_t lay_out(char *out, size_t len, const char *digits, size_t n, long k) {
    long e = k + (long)n - 1, point = (long)n + k;
    if (k >= 0 && e < (long)n + 7) {
        memcpy(out + len, digits, n);
        return zeros(out, len + n, k);
    }
    if (k < 0 && (k > -7 || (e > -4 && e < 4))) {
        if (point <= 0) {
            out[len++] = '0', out[len++] = '.';
            len = zeros(out, len, -point);
            point = 0;
        } else {
            memcpy(out + len, digits, (size_t)point);
            len += (size_t)point;
            out[len++] = '.';
        }
        memcpy(out + len, digits + point, n - (size_t)point);
        return len + n - (size_t)point;
    }
    out[len++] = digits[0];
    if (n > 1) {
        out[len++] = '.';
        memcpy(out + len, digits + 1, n - 1);
        len += n - 1;
    }
    out[len++] = 'e';
    out[len++] = e < 0 ? '-' : '+';
    return len + integer_text(e < 0 ? -e : e, out + len);
}

/* Writes the canonical text of a double to DOUBLE_TEXT_MAX bytes; returns its length. */
static size_t double_text(double number, char *out) {
    const double whole_max = 4611686018427387904.0; /* 2^62 */
    char digits[40];
    size_t len = 0, count;
    long exponent;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    if (number != number) return (size_t)(memcpy(out, "nan", 3), 3);
    if (bits >> 63) out[len++] = '-', number = -number;
    if (number == 0) return (size_t)(out[len] = '0', len + 1);
    if ((bits >> 52 & 0x7FF) == 0x7FF) return (size_t)(memcpy(out + len, "inf", 3), len + 3);
    if (number <= whole_max && (double)(int64_t)number == number) return len + integer_text((int64_t)number, out + len);
    if (!short_digits(number, digits, &count, &exponent)) exponent = shortest(number, digits, &count);
    return lay_out(out, len, digits, count, exponent);
}

/* Reads the one text that double_text writes for a number. */
static int parse_double(const char *text, size_t len, double *number) {
    char again[DOUBLE_TEXT_MAX];
    const uint64_t infinity = (uint64_t)0x7FF << 52;
    double value;
    if (len > DOUBLE_TEXT_MAX) return 0;
    if ((len == 3 && memcmp(text, "inf", 3) == 0) || (len == 4 && memcmp(text, "-inf", 4) == 0)) {
        memcpy(&value, &infinity, sizeof value);
        *number = len == 4 ? -value : value;
        return 1;
    }
    if (!parse_decimal(text, len, &value)) return 0;
    if (double_text(value, again) != len || memcmp(again, text, len) != 0) return 0;
    *number = value;
    return 1;
}

#endif
#endif
