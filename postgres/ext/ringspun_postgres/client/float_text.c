#include "client/float_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Others have an exponent. */
#define SMALLEST 1e-4
#define LARGEST 1e15

/* Of a double, without the leading one (IEEE 754, DBL_MANT_DIG of float.h). */
#define MANTISSA_BITS 52

__extension__ typedef unsigned __int128 wide;

/* What is behind the point, `left` of `whole`, which is 2**bits, and how far it is to the middle between this Float and the next ones.
 * All are exact: of 52 bits and an exponent of -14 at least, there is room in 128. */
typedef struct {
    wide left;
    wide above;
    wide below;
    int bits;
    bool even;                  /* the middle itself is read as this Float */
} fraction;

static fraction fraction_of(double number) {
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(frexp(number, &exponent), MANTISSA_BITS + 1);
    int bits = MANTISSA_BITS + 1 - exponent; /* number = mantissa / 2**bits, and bits > 0 below LARGEST */
    bool first = mantissa == (uint64_t)1 << MANTISSA_BITS; /* of its exponent: those below are nearer */
    wide behind = (wide)mantissa & (((wide)1 << bits) - 1);
    return (fraction){behind << 2, 2, first ? 1 : 2, bits + 2, mantissa % 2 == 0};
}

/* https://dl.acm.org/doi/10.1145/93542.93559: digits until what is left is nearer than any other Float. */
static char *put_fraction(fraction f, char *out) {
    wide whole = (wide)1 << f.bits;
    for (;;) {
        f.left *= 10;
        f.above *= 10;
        f.below *= 10;
        int digit = (int)(f.left >> f.bits);
        f.left &= whole - 1;
        bool low = f.even ? f.left <= f.below : f.left < f.below;
        bool high = f.even ? f.left + f.above >= whole : f.left + f.above > whole;
        if (low || high) {
            bool nearer = f.left * 2 > whole || (f.left * 2 == whole && digit % 2 != 0); /* to the even one, in the middle */
            bool up = high && (!low || nearer);
            *out++ = (char)('0' + digit + up);
            return out;
        }
        *out++ = (char)('0' + digit);
    }
}

static char *put_whole(uint64_t number, char *out) {
    char digits[20], *end = digits + sizeof(digits), *at = end;
    do *--at = (char)('0' + number % 10); while (number /= 10);
    while (at < end) *out++ = *at++;
    return out;
}

size_t rpg_float_text(double number, char *begin) {
    double size = fabs(number);
    if (!(size == 0 || (size >= SMALLEST && size < LARGEST))) return 0;
    char *out = begin;
    if (signbit(number)) *out++ = '-';
    uint64_t whole = (uint64_t)size;
    out = put_whole(whole, out);
    *out++ = '.';
    if (size == (double)whole) *out++ = '0';
    else out = put_fraction(fraction_of(size), out);
    return (size_t)(out - begin);
}
