/*
 * peer_onednn.cpp - attention by oneDNN on a CPU, in the two ways it offers.
 *
 *   primitives  two batched matmul primitives, with the scale and the causal mask fused into the first one, and a softmax in
 *               place between them
 *   graph       the graph API's documented pattern of MatMul, Multiply, [Add of a mask,] SoftMax, MatMul, if the library takes it
 *               as one partition
 * and both again with 16-bit inputs converted to float32 first, for CPUs without arithmetic of that type. In the PyPI wheels of
 * 2026 (oneDNN 3.13 on SYCL and TBB) the primitives were faster than the graph on most shapes.
 * Causal problems are computed as the full square with a mask added: oneDNN has no way to say that a part is not wanted.
 */
#include "peer.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <oneapi/dnnl/dnnl_graph.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

namespace
{

using dnnl::memory;
using dims = std::vector<int64_t>;
namespace dg = dnnl::graph;

/* Aligned storage that is touched when it is made, so that no page fault falls into a timed call. */
struct buffer {
    explicit buffer(size_t bytes) : data(std::aligned_alloc(64, (bytes + 63) / 64 * 64))
    {
        if (!data)
            throw std::bad_alloc();
        std::fill_n(static_cast<char *>(data), bytes, char(0));
    }
    ~buffer() { std::free(data); }
    buffer(const buffer &) = delete;
    buffer &operator=(const buffer &) = delete;
    void *data;
};
using buffer_ptr = std::unique_ptr<buffer>;

int64_t count(const dims &d)
{
    int64_t n = 1;
    for (int64_t x : d)
        n *= x;
    return n;
}

dims packed(const dims &d)
{
    dims strides(d.size(), 1);
    for (size_t i = d.size() - 1; i > 0; i--)
        strides[i - 1] = strides[i] * d[i];
    return strides;
}

memory::data_type type_of(int64_t dtype)
{
    return dtype == PEER_F32 ? memory::data_type::f32 : dtype == PEER_F16 ? memory::data_type::f16 : memory::data_type::bf16;
}

size_t size_of(memory::data_type type)
{
    return type == memory::data_type::f32 ? 4 : 2;
}

/* Conversions are ours and not oneDNN's reorder: with it, float16 at B2 H8 S512 D64 was six times slower on an AVX-512 CPU. */
__attribute__((target("avx,f16c"))) void widen_f16(const uint16_t *from, float *to, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i))));
    for (; i < n; i++)
        to[i] = _cvtsh_ss(from[i]);
}

__attribute__((target("avx,f16c"))) void narrow_f16(const float *from, uint16_t *to, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
    for (; i < n; i++)
        to[i] = uint16_t(_cvtss_sh(from[i], 0));
}

void widen(int64_t type, const uint16_t *from, float *to, int64_t n)
{
    if (type == PEER_F16)
        return widen_f16(from, to, n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = uint32_t(from[i]) << 16;
        memcpy(to + i, &bits, sizeof bits);
    }
}

/* Round to nearest even; there are no NaN here. */
void narrow(int64_t type, const float *from, uint16_t *to, int64_t n)
{
    if (type == PEER_F16)
        return narrow_f16(from, to, n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        to[i] = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

struct conversion {
    int64_t type, n;
    uint16_t *narrow;
    float *wide;
};

/* Plain threads, because a second pool beside oneDNN's would spin on the cores that oneDNN needs next. */
template <class body> void in_parallel(int64_t threads, int64_t n, body f)
{
    int64_t parts = n < 1 << 18 ? 1 : threads;
    std::vector<std::thread> others;
    for (int64_t t = 1; t < parts; t++)
        others.emplace_back(f, n * t / parts, n * (t + 1) / parts);
    f(0, n / parts);
    for (std::thread &t : others)
        t.join();
}

struct peer {
    dnnl::engine engine{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream{engine};
    std::vector<buffer_ptr> buffers;

    /* What a run does, in order: conversions, then either the primitives or the graph, then conversions back. */
    struct step {
        dnnl::primitive primitive;
        std::unordered_map<int, memory> args;
    };
    std::vector<conversion> before, after;
    std::vector<step> steps;
    dg::compiled_partition compiled;
    std::vector<dg::tensor> inputs, outputs;
    int64_t threads = 1;

    void *new_buffer(size_t bytes)
    {
        buffers.push_back(std::make_unique<buffer>(bytes));
        return buffers.back()->data;
    }

    memory wrap(const dims &d, memory::data_type type, const void *data)
    {
        return memory({d, type, packed(d)}, engine, const_cast<void *>(data));
    }

    /* The buffer the computation uses instead of `data`, and the conversion between them in the given list. */
    void *convert(std::vector<conversion> &list, int64_t n, int64_t outer, int64_t inner, const void *data)
    {
        if (outer == inner)
            return const_cast<void *>(data);
        float *other = static_cast<float *>(new_buffer(size_t(n) * sizeof(float)));
        list.push_back({outer, n, static_cast<uint16_t *>(const_cast<void *>(data)), other});
        return other;
    }

    /* 0 where the row may see the key, -inf elsewhere, for every row of a group. */
    void *causal_mask(const peer_shape &s, int64_t type)
    {
        int64_t rows = s.heads_q / s.heads_kv * s.seq_q;
        std::vector<float> mask(size_t(rows * s.seq_kv), 0.0f);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = i % s.seq_q + 1; j < s.seq_kv; j++)
                mask[size_t(i * s.seq_kv + j)] = -std::numeric_limits<float>::infinity();
        return constant(mask, type);
    }

    void *constant(const std::vector<float> &values, int64_t type)
    {
        void *data = new_buffer(values.size() * sizeof(float));
        if (type == PEER_F32)
            std::copy(values.begin(), values.end(), static_cast<float *>(data));
        else
            narrow(type, values.data(), static_cast<uint16_t *>(data), int64_t(values.size()));
        return data;
    }

    void build_graph(const peer_shape &s, int64_t dtype, void *q, void *k, void *v, void *o);
    void build_primitives(const peer_shape &s, int64_t dtype, void *q, void *k, void *v, void *o);

    void run()
    {
        for (const conversion &c : before)
            in_parallel(threads, c.n,
                        [&c](int64_t begin, int64_t end) { widen(c.type, c.narrow + begin, c.wide + begin, end - begin); });
        if (!outputs.empty())
            compiled.execute(stream, inputs, outputs);
        for (step &x : steps)
            x.primitive.execute(stream, x.args);
        stream.wait();
        for (const conversion &c : after)
            in_parallel(threads, c.n,
                        [&c](int64_t begin, int64_t end) { narrow(c.type, c.wide + begin, c.narrow + begin, end - begin); });
    }
};

/* The query heads that share a KV head are adjacent in memory, so a group is one head with group x seq_q rows: four dimensions
 * serve every problem, and nothing has to be broadcast over the heads. */
struct layout {
    dims q, k, scores, mask;
};

layout layout_of(const peer_shape &s)
{
    int64_t rows = s.heads_q / s.heads_kv * s.seq_q;
    return {{s.batch, s.heads_kv, rows, s.dim},
            {s.batch, s.heads_kv, s.seq_kv, s.dim},
            {s.batch, s.heads_kv, rows, s.seq_kv},
            {1, 1, rows, s.seq_kv}};
}

void peer::build_graph(const peer_shape &s, int64_t dtype, void *q, void *k, void *v, void *o)
{
    using lt = dg::logical_tensor;
    using kind = dg::op::kind;
    using attr = dg::op::attr;
    layout l = layout_of(s);
    auto dt = dtype == PEER_F32 ? lt::data_type::f32 : dtype == PEER_F16 ? lt::data_type::f16 : lt::data_type::bf16;
    size_t id = 0;
    auto tensor = [&](const dims &d, lt::data_type t) { return lt(id++, t, d, lt::layout_type::strided); };

    lt lt_q = tensor(l.q, dt), lt_k = tensor(l.k, dt), lt_v = tensor(l.k, dt), lt_o = tensor(l.q, dt);
    lt lt_scale = tensor({1}, dt), lt_mask = s.causal ? tensor(l.mask, dt) : lt();
    lt raw = tensor(l.scores, dt), scaled = tensor(l.scores, dt), masked = tensor(l.scores, dt), probs = tensor(l.scores, dt);

    size_t op_id = 100;
    dg::op qk(op_id++, kind::MatMul, {lt_q, lt_k}, {raw}, "qk");
    qk.set_attr<bool>(attr::transpose_b, true);
    dg::op scale(op_id++, kind::Multiply, {raw, lt_scale}, {scaled}, "scale");
    dg::op add(op_id++, kind::Add, {scaled, lt_mask}, {masked}, "mask");
    dg::op softmax(op_id++, kind::SoftMax, {s.causal ? masked : scaled}, {probs}, "softmax");
    softmax.set_attr<int64_t>(attr::axis, -1);
    dg::op pv(op_id++, kind::MatMul, {probs, lt_v}, {lt_o}, "pv");

    dg::graph g(dnnl::engine::kind::cpu);
    g.add_op(qk);
    g.add_op(scale);
    if (s.causal)
        g.add_op(add);
    g.add_op(softmax);
    g.add_op(pv);
    g.finalize();
    std::vector<dg::partition> partitions = g.get_partitions();
    if (partitions.size() != 1 || !partitions[0].is_supported())
        throw std::runtime_error("the graph compiler splits this pattern into " + std::to_string(partitions.size()) +
                                 " partitions");

    std::unordered_map<size_t, void *> data = {{lt_q.get_id(), q},
                                               {lt_k.get_id(), k},
                                               {lt_v.get_id(), v},
                                               {lt_scale.get_id(), constant({1.0f / std::sqrt(float(s.dim))}, dtype)}};
    if (s.causal)
        data[lt_mask.get_id()] = causal_mask(s, dtype);

    std::vector<lt> in = partitions[0].get_input_ports();
    std::unordered_map<size_t, lt> full;
    for (const lt &t : {lt_q, lt_k, lt_v, lt_scale})
        full.emplace(t.get_id(), t);
    if (s.causal)
        full.emplace(lt_mask.get_id(), lt_mask);
    for (lt &t : in)
        t = full.at(t.get_id());
    compiled = partitions[0].compile(in, {lt_o}, engine);
    for (const lt &t : in)
        inputs.emplace_back(t, engine, data.at(t.get_id()));
    outputs.emplace_back(lt_o, engine, o);
}

void peer::build_primitives(const peer_shape &s, int64_t dtype, void *q, void *k, void *v, void *o)
{
    layout l = layout_of(s);
    memory::data_type type = type_of(dtype);
    void *scores = new_buffer(size_t(count(l.scores)) * size_of(type));
    memory m_q = wrap(l.q, type, q), m_k = wrap(l.k, type, k), m_v = wrap(l.k, type, v), m_o = wrap(l.q, type, o);
    memory m_s = wrap(l.scores, type, scores);

    dims transposed = l.k, strides = packed(l.k);
    size_t rank = transposed.size();
    std::swap(transposed[rank - 1], transposed[rank - 2]);
    std::swap(strides[rank - 1], strides[rank - 2]);
    memory::desc d_kt(transposed, type, strides);
    memory m_kt(d_kt, engine, k);

    memory m_scale = wrap(dims(rank, 1), memory::data_type::f32, constant({1.0f / std::sqrt(float(s.dim))}, PEER_F32));
    dnnl::post_ops post;
    post.append_binary(dnnl::algorithm::binary_mul, m_scale.get_desc());
    std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, m_q},
                                            {DNNL_ARG_WEIGHTS, m_kt},
                                            {DNNL_ARG_DST, m_s},
                                            {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, m_scale}};
    if (s.causal) {
        memory m_mask = wrap(l.mask, memory::data_type::f32, causal_mask(s, PEER_F32));
        post.append_binary(dnnl::algorithm::binary_add, m_mask.get_desc());
        args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, m_mask);
    }
    dnnl::primitive_attr attr;
    attr.set_post_ops(post);
    steps.push_back({dnnl::matmul({engine, m_q.get_desc(), d_kt, m_s.get_desc(), attr}), args});
    steps.push_back({dnnl::softmax_forward({engine, dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate,
                                            m_s.get_desc(), m_s.get_desc(), int(rank) - 1}),
                     {{DNNL_ARG_SRC, m_s}, {DNNL_ARG_DST, m_s}}});
    steps.push_back({dnnl::matmul({engine, m_s.get_desc(), m_v.get_desc(), m_o.get_desc()}),
                     {{DNNL_ARG_SRC, m_s}, {DNNL_ARG_WEIGHTS, m_v}, {DNNL_ARG_DST, m_o}}});
}

const char *const variant_names[] = {"primitives", "graph", "primitives in f32", "graph in f32"};

} // namespace

const char *peer_version(void)
{
    static char text[128];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d, isa %d", v->major, v->minor, v->patch, int(dnnl_get_effective_cpu_isa()));
    return text;
}

const char *peer_variant(int variant)
{
    return variant >= 0 && variant < 4 ? variant_names[variant] : nullptr;
}

void *peer_setup(const struct peer_shape *shape, int variant, const void *q, const void *k, const void *v, void *o, char *why,
                 size_t why_size)
{
    try {
        bool through_f32 = variant >= 2;
        if (through_f32 && shape->dtype == PEER_F32)
            throw std::runtime_error("the inputs are f32 already");
        auto p = std::make_unique<peer>();
        p->threads = shape->threads;
        int64_t outer = shape->dtype, inner = through_f32 ? int64_t(PEER_F32) : outer;
        int64_t size_q = shape->batch * shape->heads_q * shape->seq_q * shape->dim;
        int64_t size_k = shape->batch * shape->heads_kv * shape->seq_kv * shape->dim;
        void *q2 = p->convert(p->before, size_q, outer, inner, q), *k2 = p->convert(p->before, size_k, outer, inner, k);
        void *v2 = p->convert(p->before, size_k, outer, inner, v), *o2 = p->convert(p->after, size_q, outer, inner, o);
        if (variant % 2 == 1)
            p->build_graph(*shape, inner, q2, k2, v2, o2);
        else
            p->build_primitives(*shape, inner, q2, k2, v2, o2);
        return p.release();
    } catch (const std::exception &e) {
        snprintf(why, why_size, "%s", e.what());
        return nullptr;
    }
}

int peer_run(void *handle)
{
    try {
        static_cast<peer *>(handle)->run();
        return 0;
    } catch (const std::exception &e) {
        fprintf(stderr, "onednn: %s\n", e.what());
        return 1;
    }
}

void peer_free(void *handle)
{
    delete static_cast<peer *>(handle);
}
