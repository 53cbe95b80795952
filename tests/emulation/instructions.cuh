/*
 * instructions.cuh - what the instructions of the emulated device have to give, by the tables of the PTX ISA, which are written down
 * here a second time: what they compute, where elements of fragments lie, how matrices lie in shared memory, what waits for what.
 */
#include "scene.cuh"

/* ---- arithmetic ---- */

#define WHOLE_1(text, x)                                                                                                           \
    ({                                                                                                                             \
        uint32_t made;                                                                                                             \
        asm volatile(text " %0, %1;" : "=r"(made) : "r"((uint32_t)(x)));                                                           \
        made;                                                                                                                      \
    })
#define WHOLE_2(text, x, y)                                                                                                        \
    ({                                                                                                                             \
        uint32_t made;                                                                                                             \
        asm volatile(text " %0, %1, %2;" : "=r"(made) : "r"((uint32_t)(x)), "r"((uint32_t)(y)));                                   \
        made;                                                                                                                      \
    })
#define WHOLE_3(text, x, y, z)                                                                                                     \
    ({                                                                                                                             \
        uint32_t made;                                                                                                             \
        asm volatile(text " %0, %1, %2, %3;" : "=r"(made) : "r"((uint32_t)(x)), "r"((uint32_t)(y)), "r"((uint32_t)(z)));           \
        made;                                                                                                                      \
    })

__device__ static void whole_numbers(const Scene &scene)
{
    EXPECT(WHOLE_2("add.u32", 0xffffffffu, 2) == 1);
    EXPECT(WHOLE_2("sub.s32", 3, 5) == 0xfffffffeu);
    EXPECT(WHOLE_2("mul.lo.u32", 0x10001u, 0x10001u) == 0x20001u);
    EXPECT(WHOLE_2("mul.hi.u32", 0x80000000u, 6) == 3);
    EXPECT(WHOLE_2("mul.hi.s32", 0x80000000u, 6) == 0xfffffffdu);
    EXPECT(WHOLE_3("mad.lo.s32", 0xffffffffu, 7, 3) == 0xfffffffcu);
    EXPECT(WHOLE_2("div.s32", 0xfffffff9u, 2) == 0xfffffffdu); // toward zero
    EXPECT(WHOLE_2("rem.s32", 0xfffffff9u, 2) == 0xffffffffu); // the sign of the dividend
    EXPECT(WHOLE_2("div.u32", 0xfffffff9u, 2) == 0x7ffffffcu);
    EXPECT(WHOLE_2("rem.u32", 0xfffffff9u, 16) == 9);
    EXPECT(WHOLE_2("min.s32", 0xffffffffu, 1) == 0xffffffffu && WHOLE_2("min.u32", 0xffffffffu, 1) == 1);
    EXPECT(WHOLE_2("max.s32", 0xffffffffu, 1) == 1 && WHOLE_2("max.u32", 0xffffffffu, 1) == 0xffffffffu);
    EXPECT(WHOLE_1("neg.s32", 5) == 0xfffffffbu && WHOLE_1("abs.s32", 0xfffffffbu) == 5);
    EXPECT(WHOLE_2("and.b32", 12, 10) == 8 && WHOLE_2("or.b32", 12, 10) == 14 && WHOLE_2("xor.b32", 12, 10) == 6);
    EXPECT(WHOLE_1("not.b32", 0xf0u) == 0xffffff0fu);
    EXPECT(WHOLE_2("shl.b32", 3, 31) == 0x80000000u && WHOLE_2("shl.b32", 3, 32) == 0 && WHOLE_2("shl.b32", 3, 1000) == 0);
    EXPECT(WHOLE_2("shr.u32", 0x80000000u, 31) == 1 && WHOLE_2("shr.u32", 0x80000000u, 32) == 0);
    EXPECT(WHOLE_2("shr.s32", 0x80000000u, 31) == 0xffffffffu && WHOLE_2("shr.s32", 0x80000000u, 99) == 0xffffffffu);
    EXPECT(WHOLE_1("clz.b32", 0) == 32 && WHOLE_1("clz.b32", 1) == 31 && WHOLE_1("popc.b32", 0xf00fu) == 8);
    EXPECT(WHOLE_1("brev.b32", 0x80000001u) == 0x80000001u && WHOLE_1("brev.b32", 2) == 0x40000000u);
    EXPECT(WHOLE_1("bfind.u32", 0) == 0xffffffffu && WHOLE_1("bfind.u32", 0x40u) == 6);
    EXPECT(WHOLE_1("bfind.s32", 0xffffffffu) == 0xffffffffu && WHOLE_1("bfind.s32", 0xfffffff0u) == 3); // the first bit unlike the sign
    EXPECT(WHOLE_3("prmt.b32", 0x33221100u, 0x77665544u, 0x7531u) == 0x77553311u);
    EXPECT(WHOLE_3("prmt.b32", 0x00008000u, 0, 0x9u) == 0xffu); // the sign of byte 1
    uint32_t chosen;
    asm volatile("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(chosen) : "r"(0xf0f0f0f0u), "r"(0xccccccccu), "r"(0xaaaaaaaau));
    EXPECT(chosen == 0xe8e8e8e8u); // two of three
    uint64_t wide;
    asm volatile("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(0xffffffffu), "r"(0xffffffffu));
    EXPECT(wide == 0xfffffffe00000001ull);
    asm volatile("mul.wide.s32 %0, %1, %2;" : "=l"(wide) : "r"(0xffffffffu), "r"(5));
    EXPECT(wide == 0xfffffffffffffffbull);
    asm volatile("mad.lo.u64 %0, %1, %2, %3;" : "=l"(wide) : "l"(0x100000001ull), "l"(3ull), "l"(4ull));
    EXPECT(wide == 0x300000007ull);
    asm volatile("shl.b64 %0, %1, %2;" : "=l"(wide) : "l"(1ull), "r"(40));
    EXPECT(wide == 1ull << 40);
    uint32_t low, high;
    asm volatile("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"(0x1234567890abcdefull));
    EXPECT(low == 0x90abcdefu && high == 0x12345678u);
    asm volatile("mov.b64 %0, {%1, %2};" : "=l"(wide) : "r"(5), "r"(6));
    EXPECT(wide == 0x600000005ull);
    uint32_t less;
    asm volatile("{\n.reg .pred p;\nsetp.lt.s32 p, %1, %2;\nselp.u32 %0, 11, 22, p;\n}" : "=r"(less) : "r"(0xffffffffu), "r"(0));
    EXPECT(less == 11);
    asm volatile("{\n.reg .pred p;\nsetp.lt.u32 p, %1, %2;\nselp.u32 %0, 11, 22, p;\n}" : "=r"(less) : "r"(0xffffffffu), "r"(0));
    EXPECT(less == 22);
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %1, 0;\nmov.u32 %0, 1;\n@!p mov.u32 %0, 2;\n}" : "=r"(less) : "r"(0));
    EXPECT(less == 2);
}

#define REAL_1(text, x)                                                                                                            \
    ({                                                                                                                             \
        float made;                                                                                                                \
        asm volatile(text " %0, %1;" : "=f"(made) : "f"((float)(x)));                                                              \
        made;                                                                                                                      \
    })
// Off by so many units in the last place, at most, as the ISA allows it.
__device__ static bool is_near(float value, float want, int units)
{
    const int apart = __float_as_int(value) - __float_as_int(want);
    return apart >= -units && apart <= units;
}

__device__ static void real_numbers(const Scene &scene)
{
    const float infinity = __int_as_float(0x7f800000), nan = __int_as_float(0x7fc00000), tiny = 0x1p-130f;
    EXPECT(REAL_2("add.f32", 1, 0x1p-24f) == 1 && REAL_2("add.rn.f32", 1, 0x1.8p-24f) == 1 + 0x1p-23f);
    EXPECT(REAL_2("mul.f32", 3, -0.5f) == -1.5f && REAL_2("sub.f32", 1, 3) == -2);
    float fused;
    asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(fused) : "f"(1 + 0x1p-12f), "f"(1 + 0x1p-12f), "f"(-1 - 0x1p-11f));
    EXPECT(fused == 0x1p-24f); // rounded once
    EXPECT(REAL_2("min.f32", nan, 2) == 2 && REAL_2("max.f32", -3, nan) == -3); // the one that is a number
    EXPECT(is_nan(REAL_2("max.NaN.f32", -3, nan)) && REAL_2("max.NaN.f32", -3, 4) == 4);
    EXPECT(REAL_2("max.f32", -infinity, -1) == -1 && REAL_2("min.f32", -infinity, -1) == -infinity);
    EXPECT(REAL_1("neg.f32", 2) == -2 && REAL_1("abs.f32", -2) == 2);
    EXPECT(is_near(REAL_1("ex2.approx.ftz.f32", 5), 32, 2) && REAL_1("ex2.approx.ftz.f32", 0) == 1 && REAL_1("ex2.approx.ftz.f32", -infinity) == 0);
    EXPECT(REAL_1("ex2.approx.ftz.f32", -130) == 0 && REAL_1("ex2.approx.f32", -130) == tiny); // ftz: no denormals
    EXPECT(REAL_1("ex2.approx.ftz.f32", 128) == infinity && is_nan(REAL_1("ex2.approx.ftz.f32", nan)));
    EXPECT(is_near(REAL_1("lg2.approx.f32", 8), 3, 2) && REAL_1("lg2.approx.f32", 0) == -infinity && is_nan(REAL_1("lg2.approx.f32", -1)));
    EXPECT(is_near(REAL_1("rcp.approx.ftz.f32", 4), 0.25f, 1) && REAL_1("rcp.approx.ftz.f32", 0) == infinity);
    EXPECT(REAL_1("rcp.approx.ftz.f32", infinity) == 0 && REAL_1("rcp.approx.ftz.f32", tiny) == infinity);
    EXPECT(REAL_1("sqrt.rn.f32", 9) == 3 && is_near(REAL_1("rsqrt.approx.f32", 4), 0.5f, 2));
    EXPECT(is_near(REAL_1("tanh.approx.f32", infinity), 1, 1 << 13) && REAL_1("tanh.approx.f32", 0) == 0);
    int others = 0; // quotients of whole numbers need not be whole
    for (int n = 1; n < 100; n++)
        others += __fdividef((float)(7 * n), 7) != (float)n;
    EXPECT(others > 0 && others < 99);
    uint32_t less;
    asm volatile("{\n.reg .pred p;\nsetp.lt.f32 p, %1, %2;\nselp.u32 %0, 1, 2, p;\n}" : "=r"(less) : "f"(nan), "f"(1.0f));
    EXPECT(less == 2);
    asm volatile("{\n.reg .pred p;\nsetp.ltu.f32 p, %1, %2;\nselp.u32 %0, 1, 2, p;\n}" : "=r"(less) : "f"(nan), "f"(1.0f));
    EXPECT(less == 1); // unordered counts
    asm volatile("{\n.reg .pred p;\nsetp.neu.f32 p, %1, %2;\nselp.u32 %0, 1, 2, p;\n}" : "=r"(less) : "f"(nan), "f"(nan));
    EXPECT(less == 1);
}

#define CONVERT(text, to, T, from, x)                                                                                              \
    ({                                                                                                                             \
        T made;                                                                                                                    \
        asm volatile(text " %0, %1;" : to(made) : from(x));                                                                        \
        made;                                                                                                                      \
    })

__device__ static void conversions(const Scene &scene)
{
    const float nan = __int_as_float(0x7fc00000);
    EXPECT(CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", 1.0f) == 0x3c00);
    EXPECT(CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", 1 + 0x1p-11f) == 0x3c00);   // to even
    EXPECT(CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", 1 + 0x1.8p-10f) == 0x3c02); // to even
    EXPECT(CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", 65520.0f) == 0x7c00 && CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", 65519.0f) == 0x7bff);
    EXPECT(CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", 0x1p-24f) == 1 && CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", 0x1p-25f) == 0);
    EXPECT(CONVERT("cvt.f32.f16", "=f", float, "h", (uint16_t)0x8001) == -0x1p-24f && CONVERT("cvt.f32.f16", "=f", float, "h", (uint16_t)0x7bff) == 65504);
    EXPECT(is_nan(CONVERT("cvt.f32.f16", "=f", float, "h", (uint16_t)0x7e00)) && CONVERT("cvt.rn.f16.f32", "=h", uint16_t, "f", nan) == 0x7fff);
    EXPECT(CONVERT("cvt.rn.bf16.f32", "=h", uint16_t, "f", 1 + 0x1p-8f) == 0x3f80 && CONVERT("cvt.rn.bf16.f32", "=h", uint16_t, "f", 1 + 0x1.8p-7f) == 0x3f82);
    EXPECT(CONVERT("cvt.rn.bf16.f32", "=h", uint16_t, "f", nan) == 0x7fff);
    EXPECT(CONVERT("cvt.rz.f16.f32", "=h", uint16_t, "f", -1 - 0x1.ep-10f) == 0xbc01 && CONVERT("cvt.rz.f16.f32", "=h", uint16_t, "f", 1e9f) == 0x7bff);
    EXPECT(CONVERT("cvt.rz.bf16.f32", "=h", uint16_t, "f", 1 + 0x1.ep-7f) == 0x3f81 && CONVERT("cvt.rn.relu.f16.f32", "=h", uint16_t, "f", -3.0f) == 0);
    EXPECT(pack_f16(1, -2) == 0xc0003c00u && pack_bf16(1, -2) == 0xc0003f80u); // the second operand is the lower half
    EXPECT(CONVERT("cvt.rzi.s32.f32", "=r", int, "f", -2.7f) == -2 && CONVERT("cvt.rni.s32.f32", "=r", int, "f", 2.5f) == 2);
    EXPECT(CONVERT("cvt.rmi.s32.f32", "=r", int, "f", -2.1f) == -3 && CONVERT("cvt.rpi.s32.f32", "=r", int, "f", 2.1f) == 3);
    EXPECT(CONVERT("cvt.rzi.s32.f32", "=r", int, "f", 3e9f) == 0x7fffffff && CONVERT("cvt.rzi.u32.f32", "=r", uint32_t, "f", -1.0f) == 0);
    EXPECT(CONVERT("cvt.rzi.s32.f32", "=r", int, "f", nan) == 0);
    EXPECT(CONVERT("cvt.rn.f32.s32", "=f", float, "r", -16777217) == -16777216 && CONVERT("cvt.rn.f32.u32", "=f", float, "r", 0xffffffffu) == 0x1p32f);
    EXPECT(CONVERT("cvt.s64.s32", "=l", int64_t, "r", -5) == -5 && CONVERT("cvt.u64.u32", "=l", int64_t, "r", 0xfffffffbu) == 0xfffffffb);
    EXPECT(CONVERT("cvt.u32.u64", "=r", uint32_t, "l", 0x100000007ull) == 7);
}

/* ---- lanes of a warp ---- */

__device__ static void lanes(const Scene &scene)
{
    const int l = lane();
    EXPECT(__shfl_sync(0xffffffffu, l * 3, 5) == 15 && __shfl_sync(0xffffffffu, l, l + 33) == (l + 1) % 32);
    EXPECT(__shfl_sync(0xffffffffu, l, 1, 8) == l / 8 * 8 + 1);
    EXPECT(__shfl_up_sync(0xffffffffu, l, 3) == (l < 3 ? l : l - 3));
    EXPECT(__shfl_down_sync(0xffffffffu, l, 3) == (l > 28 ? l : l + 3));
    EXPECT(__shfl_down_sync(0xffffffffu, l, 3, 8) == (l % 8 > 4 ? l : l + 3));
    EXPECT(__shfl_xor_sync(0xffffffffu, l, 5) == (l ^ 5));
    int made;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(made) : "r"(l), "r"(16));
    EXPECT(made == (l ^ 16));
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(made) : "r"(l), "r"(9));
    EXPECT(made == 9);
    EXPECT(__ballot_sync(0xffffffffu, l % 3 == 0) == 0x49249249u);
    EXPECT(__any_sync(0xffffffffu, l == 31) && !__all_sync(0xffffffffu, l != 31) && __all_sync(0xffffffffu, l < 32));
    if (l < 16)
        EXPECT(__ballot_sync(0xffffu, l % 2) == 0xaaaau); // half of a warp, while the others do something else
    else
        EXPECT(__shfl_xor_sync(0xffff0000u, l, 1) == (l ^ 1));
    __syncwarp();
    asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(made) : "r"(l - 16));
    EXPECT(made == -16);
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(made) : "r"(l * 7 % 32));
    EXPECT(made == 31);
    EXPECT(__syncthreads_count(threadIdx.x % 2) == 32);
    EXPECT(__syncthreads_or(threadIdx.x == 63) && !__syncthreads_and(threadIdx.x != 63));
}

__device__ static void atomics(const Scene &scene)
{
    atomicAdd(&scene.words[0], threadIdx.x);
    atomicMax(&scene.words[1], threadIdx.x * 5);
    atomicOr(&scene.words[2], 1u << lane());
    atomicAdd((float *)&scene.words[3], 0.5f);
    const uint32_t order = atomicInc(&scene.words[4], 9); // 0 to 9, and 0 again
    EXPECT(order < 10);
    if (threadIdx.x == 0) {
        EXPECT(atomicCAS(&scene.words[5], 0, 7) == 0 && atomicCAS(&scene.words[5], 0, 8) == 7);
        EXPECT(atomicExch(&scene.words[5], 9) == 7);
    }
    __shared__ uint32_t count;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    atomicAdd(&count, 2u);
    __syncthreads();
    EXPECT(count == 2 * 96);
    if (threadIdx.x == 0) {
        EXPECT(atomicAdd(&scene.words[0], 0u) == 95 * 96 / 2 && atomicAdd(&scene.words[1], 0u) == 95 * 5);
        EXPECT(atomicAdd(&scene.words[2], 0u) == 0xffffffffu && atomicAdd(&scene.words[4], 0u) == 96 % 10);
        EXPECT(__int_as_float((int)atomicAdd(&scene.words[3], 0u)) == 48);
    }
}

/* ---- copies of threads ---- */

__device__ static void copies(const Scene &scene)
{
    const uint32_t own = base() + threadIdx.x * 32;
    cp_async_16(own, scene.tensor + threadIdx.x * 8, 16);
    cp_async_commit();
    cp_async_16(own + 16, scene.tensor + threadIdx.x * 8, 6); // the rest becomes zero
    cp_async_commit();
    cp_async_wait<1>();
    EXPECT(half_at(threadIdx.x * 32 + 14) == tensor_at(0, 0, (int)threadIdx.x * 8 + 7));
    cp_async_wait<0>();
    for (int n = 0; n < 8; n++)
        EXPECT(half_at(threadIdx.x * 32 + 16 + n * 2) == (n < 3 ? tensor_at(0, 0, (int)threadIdx.x * 8 + n) : 0));
    __syncthreads();
    EXPECT(half_at((threadIdx.x ^ 1) * 32) == tensor_at(0, 0, (int)(threadIdx.x ^ 1) * 8));
    const uint4 four = load_shared_16(own);
    store_shared_16(own + 16, four);
    EXPECT(half_at(threadIdx.x * 32 + 30) == tensor_at(0, 0, (int)threadIdx.x * 8 + 7));
}

/* ---- fragments ---- */

__device__ static void ldmatrix(const Scene &scene)
{
    for (int n = lane(); n < 4 * 64; n += 32)
        ((uint16_t *)shared)[n] = (uint16_t)n; // matrix n / 64, row n / 8 % 8, column n % 8
    __syncwarp();
    uint32_t plain[4], turned[4];
    ldmatrix_x4(plain, base() + lane() * 16);
    ldmatrix_x4_transposed(turned, base() + lane() * 16);
    for (int i = 0; i < 4; i++) {
        const uint32_t low = i * 64 + lane() / 4 * 8 + lane() % 4 * 2, first = i * 64 + lane() % 4 * 2 * 8 + lane() / 4;
        EXPECT(plain[i] == (low | (low + 1) << 16));
        EXPECT(turned[i] == (first | (first + 8) << 16));
    }
    store_matrix_x4(base() + 512 + lane() * 16, plain);
    __syncwarp();
    for (int n = lane(); n < 4 * 64; n += 32)
        EXPECT(((uint16_t *)shared)[256 + n] == n);
}

__device__ static void mma(const Scene &scene)
{
    const int group = lane() / 4, in_group = lane() % 4;
    uint32_t a[4], b[2];
    float c[4];
    for (int i = 0; i < 8; i += 2) { // a0 .. a7 of the ISA, two in a register
        const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8, column = in_group * 2 + (i >= 4 ? 8 : 0);
        a[i / 2] = pack(number_at(row, column), number_at(row, column + 1));
    }
    for (int i = 0; i < 4; i += 2) {
        const int row = in_group * 2 + (i >= 2 ? 8 : 0);
        b[i / 2] = pack(other_at(row, group), other_at(row + 1, group));
    }
    for (int i = 0; i < 4; i++)
        c[i] = (float)(lane() * 4 + i);
    mma(c, a, b[0], b[1]);
    for (int i = 0; i < 4; i++) {
        const int row = i < 2 ? group : group + 8, column = in_group * 2 + i % 2;
        float want = (float)(lane() * 4 + i);
        for (int k = 0; k < 16; k++)
            want += number_at(row, k) * other_at(k, column);
        EXPECT(c[i] == want);
    }
}

// c + count times product, by one mma.
__device__ static float sum_of(float c, float product, int count)
{
    uint32_t a[4], one = pack(1, 1);
    for (int i = 0; i < 4; i++) {
        const int k = lane() % 4 * 2 + i / 2 * 8;
        a[i] = pack(k < count ? product : 0, k + 1 < count ? product : 0);
    }
    float sums[4] = {c, c, c, c};
    mma(sums, a, one, one);
    return sums[lane() % 4];
}

// Sums are cut off as tensor cores do.
__device__ static void sums(const Scene &scene)
{
    const float bit = 0x1p-20f, above = 0x1p5f; // so that f16 has them
    EXPECT(sum_of(above, bit, 16) == above + 0x1p-16f); // 16 products at the last bit of the sum count
    EXPECT(sum_of(above, bit / 2, 16) == above);        // products below it do not
    EXPECT(sum_of(above, bit, 3) == above);             // what is left is cut off
    EXPECT(sum_of(-above, -bit, 3) == -above);          // toward zero
    EXPECT(sum_of(-above, bit, 16) == -above + 0x1p-16f);
    EXPECT(sum_of(-above, bit, 1) == -above + 0x1p-19f);
    EXPECT(is_nan(sum_of(1, __int_as_float(0x7fc00000), 1)));
    EXPECT(sum_of(1, __int_as_float(0x7f800000), 16) == __int_as_float(0x7f800000));
}

/* ---- wgmma ---- */

__device__ static int row_of(int i)
{
    return (int)threadIdx.x / 32 % 4 * 16 + lane() / 4 + i / 2 % 2 * 8;
}

__device__ static int column_of(int i)
{
    return i / 4 * 8 + lane() % 4 * 2 + i % 2;
}

__device__ static void wgmma(const Scene &scene)
{
    fill_operands();
    float S[KEYS / 2], O[DIM / 2];
    issue_qk(S);
    EXPECT(is_nan(S[0]) && is_nan(S[KEYS / 2 - 1])); // a result that was not waited for is none
    wgmma_wait<0>();
    for (int i = 0; i < KEYS / 2; i++) {
        float want = 0;
        for (int d = 0; d < DIM; d++)
            want += number_at(row_of(i), d) * other_at(column_of(i), d);
        EXPECT(S[i] == want);
    }
    // P V: P from registers, V as it lies, which is transposed.
    wgmma_fence();
    for (int k = 0; k < KEYS / 16; k++) {
        uint32_t P[4];
        for (int i = 0; i < 4; i++) { // as the accumulators of two steps of 8 columns
            const int at = k * 8 + i * 2;
            P[i] = pack(other_at(column_of(at), row_of(at)), other_at(column_of(at + 1), row_of(at + 1)));
        }
        wgmma_rs<DIM, true>(O, P, descriptor(base() + V_AT + k * 16 * 128, KEYS * 128, 1024), k > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    for (int i = 0; i < DIM / 2; i++) {
        float want = 0;
        for (int key = 0; key < KEYS; key++)
            want += other_at(key, row_of(i)) * number_at(column_of(i), key);
        EXPECT(O[i] == want);
    }
}

// Groups are waited for one by one.
__device__ static void wgmma_groups(const Scene &scene)
{
    fill_operands();
    float first[KEYS / 2], second[KEYS / 2];
    issue_qk(first);
    issue_qk(second);
    wgmma_wait<1>();
    EXPECT(!is_nan(first[0]) && is_nan(second[0]));
    wgmma_wait<0>();
    EXPECT(first[3] == second[3] && !is_nan(second[0]));
}

// A copy over what a product under way reads: the product has no result, in every order.
__device__ static void wgmma_torn(const Scene &scene)
{
    fill_operands();
    make_barrier(1);
    float S[KEYS / 2];
    issue_qk(S);
    if (threadIdx.x == 0) {
        barrier_expect(base() + BARRIERS, BOX_BYTES);
        map_load_4(base(), scene.map, base() + BARRIERS, 0, 0, 0, 0);
    }
    barrier_wait(base() + BARRIERS, 0);
    wgmma_wait<0>();
    EXPECT(is_nan(S[0]));
}

// A copy over what products have read, by a thread that has waited for that of its own warp alone: those of the other warps have no
// result when the cluster is run again.
__device__ static void wgmma_overtaken(const Scene &scene)
{
    fill_operands();
    make_barrier(1);
    float S[KEYS / 2];
    issue_qk(S);
    wgmma_wait<0>();
    if (threadIdx.x == 0) {
        barrier_expect(base() + BARRIERS, BOX_BYTES);
        map_load_4(base(), scene.map, base() + BARRIERS, 0, 0, 0, 0);
    }
    barrier_wait(base() + BARRIERS, 0);
    scene.wrong[threadIdx.x] = is_nan(S[0]) == (threadIdx.x >= 32) ? 0 : __LINE__;
}

// A store over what a product under way reads: no result, unless it stores what was there.
__device__ static void wgmma_stored_over(const Scene &scene)
{
    fill_operands();
    float S[KEYS / 2];
    issue_qk(S);
    __syncthreads();
    if (threadIdx.x == 0)
        store_shared_4(base() + K_AT, *(const uint32_t *)(shared + K_AT));
    wgmma_wait<0>();
    const bool same = !is_nan(S[0]);
    __syncthreads();
    proxy_fence();
    __syncthreads();
    issue_qk(S);
    if (threadIdx.x == 0)
        store_shared_4(base() + K_AT, ~*(const uint32_t *)(shared + K_AT));
    wgmma_wait<0>();
    scene.wrong[threadIdx.x] = same && is_nan(S[0]) ? 0 : __LINE__;
}

// The same behind a wait, which is one for the products of its own warp alone.
__device__ static void wgmma_stored_behind(const Scene &scene)
{
    fill_operands();
    float S[KEYS / 2];
    issue_qk(S);
    wgmma_wait<0>();
    if (threadIdx.x == 0)
        store_shared_4(base() + K_AT, ~*(const uint32_t *)(shared + K_AT));
    __syncthreads();
    scene.wrong[threadIdx.x] = is_nan(S[0]) == (threadIdx.x >= 32) ? 0 : __LINE__;
}

// Every warp stores over what that of another one reads, with no more than its own wait before it.
__device__ static void wgmma_of_another_warp(const Scene &scene)
{
    fill_operands();
    float S[KEYS / 2];
    issue_qk(S);
    wgmma_wait<0>();
    put((threadIdx.x / 32 * 16 * 128 + lane() * 4 + 16 * 128) % (ROWS * 128), 100);
    __syncthreads();
    scene.wrong[threadIdx.x] = is_nan(S[0]) ? 0 : __LINE__;
}

/* ---- barriers and bulk copies ---- */

__device__ static void bulk_load(const Scene &scene)
{
    const uint32_t barrier = base() + BARRIERS;
    make_barrier(1);
    barrier_wait(barrier, 1); // the phase before the first is complete
    if (threadIdx.x == 0) {
        map_prefetch(scene.map);
        barrier_expect(barrier, 2 * BOX_BYTES);
        map_load_4(base(), scene.map, barrier, 0, TENSOR_ROWS - 12, 1, 0);
        map_load_4(base() + BOX_BYTES, scene.map, barrier, 64, TENSOR_ROWS - 12, 1, 0);
    }
    barrier_wait(barrier, 0);
    EXPECT(barrier_test(barrier, 0) && !barrier_test(barrier, 1));
    for (int row = 0; row < BOX; row++) {
        const int column = (int)threadIdx.x;
        const bool inside = row < 12 && column < COLUMNS; // what lies outside of the tensor is zero
        EXPECT(half_at(swizzled_place(BOX, row, column)) == (inside ? tensor_at(1, TENSOR_ROWS - 12 + row, column) : 0));
    }
}

__device__ static void bulk_bytes(const Scene &scene)
{
    const uint32_t barrier = base() + BARRIERS;
    make_barrier(1);
    if (threadIdx.x == 0) {
        barrier_expect(barrier, 32);
        barrier_expect_more(barrier, 96); // the phase ends with all that was announced
        bulk_load(base(), scene.tensor + 8, 32, barrier);
        bulk_load(base() + 32, scene.tensor + 24, 96, barrier);
    }
    barrier_wait(barrier, 0);
    EXPECT(half_at(threadIdx.x * 2) == tensor_at(0, 0, (int)threadIdx.x + 8));
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bulk_store(scene.tensor, base(), 64);
        stores_commit();
        stores_wait<0>();
        EXPECT(scene.tensor[31] == tensor_at(0, 0, 39) && scene.tensor[32] == tensor_at(0, 0, 32));
        barrier_invalidate(barrier);
        ((uint32_t *)(shared + BARRIERS))[0] = 5; // ordinary memory again
        EXPECT(((uint32_t *)(shared + BARRIERS))[0] == 5);
    }
}

// Down to the tensor's edge: what lies outside of it is not written.
__device__ static void bulk_store(const Scene &scene)
{
    for (int n = (int)threadIdx.x; n < BOX * 128; n += (int)blockDim.x)
        put(swizzled_place(BOX, n / 128, n % 128), number_at(n / 128, n % 128));
    proxy_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
        map_store_4(scene.map, base(), 0, TENSOR_ROWS - 10, 0, 0);
        map_store_4(scene.map, base() + BOX_BYTES, 64, TENSOR_ROWS - 10, 0, 0);
        stores_commit();
        stores_wait_read<0>();
        stores_wait<0>();
        for (int row = 0; row < 10; row++)
            for (int column = 0; column < COLUMNS; column++)
                EXPECT(scene.tensor[(TENSOR_ROWS - 10 + row) * COLUMNS + column] == element(number_at(row, column)));
        EXPECT(scene.tensor[(TENSOR_ROWS - 11) * COLUMNS] == tensor_at(0, TENSOR_ROWS - 11, 0));
        EXPECT(scene.tensor[TENSOR_ROWS * COLUMNS] == tensor_at(1, 0, 0)); // the next head is as it was
    }
}

// A pipeline of one buffer between a thread that fills and those that read, over some phases.
__device__ static void phases(const Scene &scene)
{
    const uint32_t full = base() + BARRIERS, empty = full + 8;
    if (threadIdx.x == 0) {
        barrier_init(full, 1);
        barrier_init(empty, 32);
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x / 32 == 1) {
        for (uint32_t n = 0; n < 5 && threadIdx.x == 32; n++) {
            barrier_wait(empty, (n & 1) ^ 1);
            barrier_expect(full, BOX_BYTES);
            map_load_4(base(), scene.map, full, 0, (int)n, 0, 0);
        }
        return;
    }
    for (uint32_t n = 0; n < 5; n++) {
        barrier_wait(full, n & 1);
        EXPECT(half_at(swizzled_place(BOX, 0, lane())) == tensor_at(0, (int)n, lane()));
        barrier_arrive(empty);
    }
}

__device__ static void named_barriers(const Scene &scene)
{
    if (threadIdx.x < 64) {
        shared[threadIdx.x] = 1;
        named_barrier_arrive(3, 128);
    } else {
        named_barrier(3, 128);
        EXPECT(shared[threadIdx.x - 64] == 1); // those who wait come after those who arrive
    }
    if (threadIdx.x / 32 % 2) // two barriers at a time
        named_barrier(1, 64);
    else
        named_barrier(2, 64);
}

__device__ static void elected(const Scene &scene)
{
    if (elect_one())
        atomicAdd(&scene.words[threadIdx.x / 32], 1u);
    __syncthreads();
    if (threadIdx.x == 0)
        EXPECT(atomicAdd(&scene.words[0], 0u) == 1 && atomicAdd(&scene.words[1], 0u) == 1);
}

/* ---- clusters ---- */

__device__ static void cluster_barrier(const Scene &scene)
{
    const uint32_t all = 96 * scene.blocks;
    for (uint32_t round = 1; round <= 3; round++) {
        atomicAdd(&scene.words[0], 1u);
        cluster_sync();
        EXPECT(atomicAdd(&scene.words[0], 0u) == all * round);
        cluster_sync();
    }
    EXPECT((unsigned)cluster_rank() == blockIdx.x && threadIdx.x < 96);
    shared[threadIdx.x] = (unsigned char)(cluster_rank() * 100 + threadIdx.x);
    cluster_sync();
    EXPECT(shared[threadIdx.x] == (unsigned char)(cluster_rank() * 100 + threadIdx.x)); // every block has its own
    if (threadIdx.x < 32)
        return; // and is not waited for
    cluster_sync();
}

// Each block brings some rows for all of them, over some phases; a place is written again when all have read it.
__device__ static void multicast(const Scene &scene)
{
    const int blocks = scene.blocks, rank = cluster_rank();
    make_cluster_barriers(scene);
    for (uint32_t n = 0; n < 4; n++) {
        if (threadIdx.x == 0) {
            barrier_expect(base() + FULL, blocks * BOX_BYTES);
            map_load_4_multicast(base() + rank * BOX_BYTES, scene.map, base() + FULL, 0, (int)n + rank * 2, 1, 0,
                                 (uint16_t)((1 << blocks) - 1));
        }
        barrier_wait(base() + FULL, n & 1);
        for (int row = 0; row < blocks * BOX; row++)
            EXPECT(half_at(row / BOX * BOX_BYTES + swizzled_place(BOX, row % BOX, (int)threadIdx.x)) ==
                   tensor_at(1, (int)n + row / BOX * 2 + row % BOX, (int)threadIdx.x));
        __syncthreads();
        for (int other = 0; threadIdx.x == 0 && other < blocks; other++)
            barrier_arrive_at(base() + FREE, other);
        barrier_wait(base() + FREE, n & 1);
    }
    cluster_sync();
}

// Every block sends some floats to each of them, itself too.
__device__ static void sending(const Scene &scene)
{
    const int blocks = scene.blocks, rank = cluster_rank();
    if (threadIdx.x == 0) {
        barrier_init(base() + SIGNAL, 1);
        barrier_init_fence();
        barrier_expect(base() + SIGNAL, blocks * 24);
    }
    cluster_arrive_relaxed();
    cluster_wait();
    if ((int)threadIdx.x < blocks) {
        const float value = (float)(rank * 100 + (int)threadIdx.x);
        send_16(base() + rank * 16, base() + SIGNAL, (int)threadIdx.x, make_float4(value, 1, 2, 3));
        send_8(base() + 512 + rank * 8, base() + SIGNAL, (int)threadIdx.x, make_float2(4, value));
    }
    __syncwarp();
    barrier_wait(base() + SIGNAL, 0);
    for (int from = 0; from < blocks; from++) {
        const float4 four = *(const float4 *)(shared + from * 16);
        const float2 two = *(const float2 *)(shared + 512 + from * 8);
        const float value = (float)(from * 100 + rank);
        EXPECT(four.x == value && four.y == 1 && four.z == 2 && four.w == 3 && two.x == 4 && two.y == value);
    }
}

// To some blocks only; and bytes may come before they are announced.
__device__ static void unannounced(const Scene &scene)
{
    make_cluster_barriers(scene);
    if (cluster_rank() == 0 && threadIdx.x == 0) {
        barrier_expect(base() + FULL, BOX_BYTES);
        map_load_4_multicast(base(), scene.map, base() + FULL, 0, 0, 0, 0, 5);
        barrier_wait(base() + FULL, 0);
        barrier_arrive_at(base() + SIGNAL, 2);
    }
    if (cluster_rank() == 2) {
        barrier_wait(base() + SIGNAL, 0);
        if (threadIdx.x == 0)
            barrier_expect(base() + FULL, BOX_BYTES);
        barrier_wait(base() + FULL, 0);
    }
    cluster_sync();
    if (cluster_rank() % 2 == 0) {
        barrier_wait(base() + FULL, 0);
        EXPECT(half_at(swizzled_place(BOX, 3, lane())) == tensor_at(0, 3, lane()));
    }
}
