/*
 * simt.cuh - what lib/cuda/kernels/simt.cuh has, for the emulation.
 */
#ifndef EMULATED_SIMT_CUH
#define EMULATED_SIMT_CUH

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
    emulation::close_copies();
}

template <int Open> inline void copies_wait()
{
    emulation::wait_copies(Open);
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
