/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The true values of functions of mathematics.
 *
 * The host's double functions decide where they surely can: where their value,
 * a little smaller and a little larger, rounds to the same f32. MPFR decides the
 * rest. That the host is good enough is measured before (reference_measure). */
#ifndef VYRE_TESTS_VERIFY_REFERENCE_H
#define VYRE_TESTS_VERIFY_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Half the width, relative, of what the host's value is taken for: 128 units of
 * 2^-53; the host may be wrong by a quarter of that. */
#define REFERENCE_MARGIN 0x1p-46
#define REFERENCE_LIMIT  32.0 /* in 2^-53 */

typedef struct reference reference;

/* Returns NULL for an unknown function. */
const reference *reference_find(const char *name);

/* The host's functions; NULL for the other number of arguments. */
typedef double (*reference_one)(double x);
typedef double (*reference_two)(double x, double y);
reference_one reference_host_one(const reference *r);
reference_two reference_host_two(const reference *r);

/* The correctly rounded result, by MPFR. x is not NaN, and the result is neither
 * that nor by a rule of its own. */
float reference_exact(const reference *r, float x);

/* |got - f(x, y)| in units of the last place of an f32, by MPFR. Infinity counts
 * as 2^128. */
double reference_error(const reference *r, float x, float y, float got);

/* The largest relative error of the host's function, in 2^-53, over random
 * arguments of all sizes and, for one argument, those of the file @p hard. */
double reference_measure(const reference *r, unsigned count, const char *hard);

/* Bits of the last place of a result of that size; of f32. */
double reference_ulp(double value);

#endif
