/*
 * simt.cuh - what lib/cuda/kernels/simt.cuh has, for the emulation. A copy is made as late as it may be: when the thread waits for
 * it. Until then its place holds NaN, so that reading too early, or writing over what others still read, shows in the result.
 */
#ifndef EMULATED_SIMT_CUH
#define EMULATED_SIMT_CUH

#include <deque>

struct alignas(16) float4 {
    float x, y, z, w;
};

inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}

namespace emulation
{
struct Copy {
    void *to;
    const void *from;
    int size, bytes;
};
inline std::deque<std::vector<Copy>> copies[1024]; /* of each thread: groups, the last one open */
inline Barrier named[16];

inline void begin_copy(void *to, const void *from, int size, int bytes)
{
    if ((uintptr_t)to % size || (bytes && (uintptr_t)from % size)) {
        fprintf(stderr, "emulation: a copy of %d bytes is not aligned to them\n", size);
        abort();
    }
    if (copies[current].empty())
        copies[current].emplace_back();
    copies[current].back().push_back(Copy{to, from, size, bytes});
    memset(to, 0xff, size);
}
} // namespace emulation

inline void copy16(float *to, const float *from, int bytes)
{
    emulation::begin_copy(to, from, 16, bytes);
}

inline void copy4(float *to, const float *from, int bytes)
{
    emulation::begin_copy(to, from, 4, bytes);
}

inline void copies_close()
{
    auto &groups = emulation::copies[emulation::current];
    if (groups.empty())
        groups.emplace_back();
    groups.emplace_back();
}

template <int Open> inline void copies_wait()
{
    auto &groups = emulation::copies[emulation::current];
    while (groups.size() > Open + 1) {
        for (const emulation::Copy &copy : groups.front()) {
            memset(copy.to, 0, copy.size);
            memcpy(copy.to, copy.from, copy.bytes);
        }
        groups.pop_front();
    }
}

inline void barrier(int id, int threads)
{
    emulation::named[id].participants = threads;
    emulation::arrive(emulation::named[id]);
}

inline float power2(float x)
{
    float y = exp2f(x);
    return fabsf(y) < 0x1p-126f ? 0.0f : y;
}

#endif
