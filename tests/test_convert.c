/* Conversions between float and the 16-bit types, against a computation that rounds by searching instead of by bits. */
#include "instance.h"
#include "tap.h"

#include <math.h>
#include <string.h>

static float f16_value(uint16_t bits)
{
    int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    double value = exponent == 0   ? ldexp(mantissa, -24)
                   : exponent < 31 ? ldexp(1024 + mantissa, exponent - 25)
                   : mantissa      ? NAN
                                   : INFINITY;
    return (float)(bits & 0x8000 ? -value : value);
}

static float bf16_value(uint16_t bits)
{
    int exponent = (bits >> 7) & 255, mantissa = bits & 127;
    double value = exponent == 0    ? ldexp(mantissa, -133)
                   : exponent < 255 ? ldexp(128 + mantissa, exponent - 134)
                   : mantissa       ? NAN
                                    : INFINITY;
    return (float)(bits & 0x8000 ? -value : value);
}

static bool same(float a, float b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/*
 * The nearest 16-bit value, ties to even, by bisection over the magnitudes 0 .. `infinity` (whose bit pattern stands for the
 * first value that is too large: what rounds to it is infinite).
 */
static uint16_t nearest(double value, uint16_t infinity, float (*value_of)(uint16_t), double above_largest)
{
    double magnitude = fabs(value);
    uint16_t low = 0, high = infinity;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if ((double)value_of(middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double down = magnitude - (double)value_of(low), up = (high == infinity ? above_largest : (double)value_of(high)) - magnitude;
    uint16_t bits = down < up || (down == up && low % 2 == 0) ? low : high;
    return (uint16_t)(bits | (signbit(value) ? 0x8000 : 0));
}

static void all_patterns(void)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        float half = attest_f16_to_float((uint16_t)bits), brain = attest_bf16_to_float((uint16_t)bits);
        tap_check(same(half, f16_value((uint16_t)bits)), "f16 0x%04x is %g", bits, (double)half);
        tap_check(same(brain, bf16_value((uint16_t)bits)), "bf16 0x%04x is %g", bits, (double)brain);
        if (isnan(half))
            tap_check(isnan(attest_f16_to_float(attest_f16_from_float(half))), "f16 NaN 0x%04x does not stay NaN", bits);
        else
            tap_check(attest_f16_from_float(half) == bits, "f16 0x%04x comes back as 0x%04x", bits, attest_f16_from_float(half));
        if (isnan(brain))
            tap_check(isnan(attest_bf16_to_float(attest_bf16_from_float(brain))), "bf16 NaN 0x%04x does not stay NaN", bits);
        else
            tap_check(attest_bf16_from_float(brain) == bits, "bf16 0x%04x comes back as 0x%04x", bits,
                      attest_bf16_from_float(brain));
    }
}

static void check_rounding(float value)
{
    if (isnan(value)) {
        tap_check(isnan(attest_f16_to_float(attest_f16_from_float(value))), "f16 of NaN");
        tap_check(isnan(attest_bf16_to_float(attest_bf16_from_float(value))), "bf16 of NaN");
        return;
    }
    uint16_t half = attest_f16_from_float(value), brain = attest_bf16_from_float(value);
    uint16_t want_half =
        isinf(value) ? (uint16_t)(value > 0 ? 0x7C00 : 0xFC00) : nearest((double)value, 0x7C00, f16_value, 65536.0);
    uint16_t want_brain =
        isinf(value) ? (uint16_t)(value > 0 ? 0x7F80 : 0xFF80) : nearest((double)value, 0x7F80, bf16_value, 0x1p128);
    tap_check(half == want_half, "f16 of %.9g (%a) is 0x%04x, not 0x%04x", (double)value, (double)value, half, want_half);
    tap_check(brain == want_brain, "bf16 of %.9g (%a) is 0x%04x, not 0x%04x", (double)value, (double)value, brain, want_brain);
}

/* Around every 16-bit value and every midpoint between two: the float itself and its neighbours. */
static void around_midpoints(void)
{
    for (uint32_t bits = 0; bits < 65536; bits += tap.quick ? 97 : 1) {
        float values[2] = {f16_value((uint16_t)bits), bf16_value((uint16_t)bits)};
        float next[2] = {f16_value((uint16_t)(bits + 1)), bf16_value((uint16_t)(bits + 1))};
        for (int n = 0; n < 2; n++) {
            float middle = (float)(((double)values[n] + (double)next[n]) / 2);
            const float around[] = {values[n],
                                    middle,
                                    nextafterf(middle, INFINITY),
                                    nextafterf(middle, -INFINITY),
                                    nextafterf(values[n], INFINITY),
                                    nextafterf(values[n], -INFINITY)};
            for (size_t k = 0; k < sizeof around / sizeof *around; k++)
                check_rounding(around[k]);
        }
    }
    check_rounding(65519.996f);
    check_rounding(65520.0f);
    check_rounding(3.3961775e38f);
}

static void random_floats(void)
{
    struct rng rng = rng_from(tap.seed, "floats");
    for (int n = 0; n < tap_amount(20000, 2000000, 100000000); n++) {
        uint32_t bits = (uint32_t)rng_next(&rng);
        float value;
        memcpy(&value, &bits, sizeof value);
        check_rounding(value);
    }
}

/* The oracle converts by itself. With one key a row, O is V. */
static void by_the_oracle(void)
{
    enum { DIM = 512, ROWS = 65536 / DIM };
    static uint16_t v[ROWS * DIM], zeros[ROWS];
    static double o[ROWS * DIM];
    float (*const value_of[2])(uint16_t) = {f16_value, bf16_value};
    const attest_dtype dtypes[2] = {ATTEST_F16, ATTEST_BF16};
    attest_context *context = NULL;
    tap_check(attest_context_create_on("cpu", &context) == ATTEST_OK, "a context");
    for (uint32_t bits = 0; bits < 65536; bits++)
        v[bits] = (uint16_t)bits;
    for (int n = 0; n < 2; n++) {
        attest_problem p;
        attest_problem_init(&p, dtypes[n], 1, ROWS, ROWS, 1, 1, 1);
        p.dim_v = DIM;
        attest_problem_pack(&p);
        attest_tensors t = {.size = sizeof t, .q = zeros, .k = zeros, .v = v};
        attest_status status = attest_reference(context, &p, &t, ATTEST_EXACT, 0, ROWS, o, NULL);
        tap_check(status == ATTEST_OK, "%s", attest_context_detail(context));
        for (uint32_t bits = 0; bits < 65536; bits++) {
            double want = (double)value_of[n]((uint16_t)bits);
            tap_check(isnan(want) ? isnan(o[bits]) : o[bits] == want, "%s 0x%04x is %g, not %g", type_name(dtypes[n]), bits,
                      o[bits], want);
        }
    }
    attest_context_destroy(context);
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {{"all patterns", all_patterns},
                                            {"around midpoints", around_midpoints},
                                            {"random floats", random_floats},
                                            {"by the oracle", by_the_oracle}};
    return tap_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
