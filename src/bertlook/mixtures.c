/* Entropies of the mixtures of every two heads' attention weights, with vectors of 16 numbers.

   The logarithm is read off the bits of a number: exponent + mantissa as they stand, and a minimax polynomial for what
   is missing, off by 1.3e-6 at most. */

typedef float lanes __attribute__((vector_size(64), aligned(4)));
typedef int bits __attribute__((vector_size(64), aligned(4)));

static inline lanes log2_of_half(lanes x) {
    bits b = (bits)x - 0x3f800000;
    lanes m = (lanes)((b & 0x7fffff) | 0x3f800000);
    lanes p = -0.0256910888f * m + 0.275148772f;
    p = p * m - 1.26691827f;
    p = p * m + 3.28652881f;
    p = p * m - 5.34198926f;
    p = p * m + 5.11296317f;
    p = p * m - 3.04004029f;
    return __builtin_convertvector(b, lanes) * 0x1p-23f + p;
}

void mixtures(const float *block, long blocks, long heads, long width, double *total) {
    for (; blocks--; block += heads * width)
        for (long i = 0; i < heads; i++)
            for (long j = 0; j <= i; j++) {
                const lanes *p = (const lanes *)(block + i * width), *q = (const lanes *)(block + j * width);
                lanes sums = {0};
                for (long k = 0; k < width / 16; k++) {
                    lanes both = p[k] + q[k];
                    sums += both * log2_of_half(both);
                }
                float sum = 0;
                for (int k = 0; k < 16; k++) sum += sums[k];
                total[i * heads + j] -= 0.34657359f * sum;
            }
}
