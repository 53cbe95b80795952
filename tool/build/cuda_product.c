/*
 * cuda_product.c - holds an image against its manifest. See cuda_product.h.
 */
#include "cuda_product.h"

#include <stdio.h>
#include <string.h>

#include "base/session.h"

struct cuda_use cuda_measured(const struct cuda_product *product)
{
    const struct cuda_entry *entry = cuda_image_entry(&product->image, ATTEST_CUDA_KERNEL);
    struct cuda_use use = {.threads = product->configuration.numbers[CUDA_THREADS]};
    if (!entry)
        return use;
    use.registers = entry->registers;
    use.shared = entry->shared + product->image.facts.dynamic_shared;
    for (int i = 0; i < product->ptxas_count; i++)
        if (strcmp(product->ptxas[i].name, ATTEST_CUDA_KERNEL) == 0)
            use.barriers = product->ptxas[i].barriers;
    return use;
}

/* The entry points, and nothing that is not a function of the arguments alone. */
static bool judge_shape(const struct cuda_manifest *manifest, const struct cuda_image *image, char *why, size_t size)
{
    const bool split = manifest->launch == ATTEST_LAUNCH_SPLIT;
    const int64_t parameters = (int64_t)(sizeof(attest_cuda_args) + (manifest->map_count ? sizeof(attest_cuda_maps) : 0));
    if (!cuda_image_entry(image, ATTEST_CUDA_KERNEL)) {
        snprintf(why, size,
                 "it has no function " ATTEST_CUDA_KERNEL "; write extern \"C\" __global__ void " ATTEST_CUDA_KERNEL
                 "(const __grid_constant__ attest_cuda_args args)");
        return false;
    }
    if (split && !cuda_image_entry(image, ATTEST_CUDA_COMBINE)) {
        snprintf(why, size, "launch = split needs a second function, " ATTEST_CUDA_COMBINE ", and it has none");
        return false;
    }
    for (int i = 0; i < image->entry_count; i++) {
        const struct cuda_entry *entry = &image->entries[i];
        bool known = strcmp(entry->name, ATTEST_CUDA_KERNEL) == 0 || (split && strcmp(entry->name, ATTEST_CUDA_COMBINE) == 0);
        if (!known) {
            snprintf(why, size, "it has a kernel %s that nobody launches; a kernel has " ATTEST_CUDA_KERNEL "%s alone", entry->name,
                     split ? " and " ATTEST_CUDA_COMBINE : "");
            return false;
        }
        if (entry->parameters != parameters) {
            snprintf(why, size, "%s has %lld bytes of parameters, not %lld: its parameters are attest_cuda_args%s", entry->name,
                     (long long)entry->parameters, (long long)parameters,
                     manifest->map_count ? " and attest_cuda_maps, because the manifest has maps" : " alone");
            return false;
        }
    }
    if (image->import[0]) {
        snprintf(why, size, "it calls %s; a kernel prints nothing, allocates nothing and launches nothing", image->import);
        return false;
    }
    if (image->state) {
        snprintf(why, size,
                 "it has %lld bytes of __device__ variables (%s), which outlive a call; constants go into __constant__ memory",
                 (long long)image->state, image->state_name);
        return false;
    }
    if (image->odd[0]) {
        snprintf(why, size, "it has %s; a kernel is a function of its arguments", image->odd);
        return false;
    }
    return true;
}

/* Whether a block of the product may be one of a cluster. */
static bool has_clusters(const struct cuda_manifest *manifest, const struct cuda_product *product)
{
    return product->configuration.numbers[CUDA_CLUSTER] > 1 || manifest->launch == ATTEST_LAUNCH_JOINED;
}

/* Nothing in the machine code that is not a function of the arguments, and all of the code was seen. */
static bool judge_purity(const struct cuda_manifest *manifest, const struct cuda_product *product, char *why, size_t size)
{
    enum { INSTRUCTION = 16 };
    const struct cuda_purity *purity = &product->purity;
    if (purity->instructions == 0) /* it could not be listed, which the gate says by itself */
        return true;
    if (purity->refused > 0)
        snprintf(why, size, "%s%s; a kernel is a function of its arguments", purity->first,
                 purity->refused > 1 ? " (and there is more)" : "");
    else if (product->listing.policies > 0)
        snprintf(
            why, size,
            "%s has a cache policy of its own (createpolicy, L2::cache_hint), which outlives the call; leave it out, or give it "
            "as a constant that lets lines go first",
            product->listing.policy);
    else if (purity->cluster[0] && !has_clusters(manifest, product))
        snprintf(why, size, "%s is for blocks of a cluster, and the manifest names none; write cluster = 2, 4 or 8",
                 purity->cluster);
    else if (product->image.arch <= 90 && (int64_t)purity->instructions * INSTRUCTION != product->image.code)
        snprintf(why, size,
                 "the listing shows %d instructions, and the image has %lld bytes of code: part of it belongs to no function",
                 purity->instructions, (long long)product->image.code);
    else
        return true;
    return false;
}

static bool judge_facts(const struct cuda_manifest *manifest, const struct cuda_product *product, char *why, size_t size)
{
    const struct cuda_image *image = &product->image;
    const struct cuda_configuration *c = &product->configuration;
    const struct cuda_entry *entry = cuda_image_entry(image, ATTEST_CUDA_KERNEL);
    const struct {
        const char *name;
        int64_t found, wanted;
    } facts[] = {
        {"architecture", image->arch, cuda_limits[c->arch].number},
        {"abi", image->facts.abi, ATTEST_CUDA_ABI},
        {"args_size", image->facts.args_size, sizeof(attest_cuda_args)},
        {"dtype", image->facts.dtype, c->dtype},
        {"dim", image->facts.dim, c->dim},
        {"tile_q", image->facts.tile_q, c->numbers[CUDA_TILE_Q]},
        {"tile_kv", image->facts.tile_kv, c->numbers[CUDA_TILE_KV]},
        {"stages", image->facts.stages, c->numbers[CUDA_STAGES]},
        {"threads", image->facts.threads, c->numbers[CUDA_THREADS]},
        {"cluster", entry->cluster, manifest->launch == ATTEST_LAUNCH_GRID ? c->numbers[CUDA_CLUSTER] : 1},
    };
    if (!image->has_facts) {
        snprintf(why, size,
                 "it does not say what it was compiled for; write ATTEST_CUDA_FACTS(bytes of dynamic shared memory) once, at "
                 "file scope");
        return false;
    }
    for (int i = 0; i < image->entry_count; i++)
        if (image->entries[i].threads && image->entries[i].threads < c->numbers[CUDA_THREADS]) {
            snprintf(why, size, "%s was compiled for at most %lld threads (__launch_bounds__), and the manifest says %lld",
                     image->entries[i].name, (long long)image->entries[i].threads, (long long)c->numbers[CUDA_THREADS]);
            return false;
        }
    for (int i = 0; i < COUNT_OF(facts); i++)
        if (facts[i].found != facts[i].wanted) {
            snprintf(why, size, "the image was compiled for %s %lld, and the manifest says %lld", facts[i].name,
                     (long long)facts[i].found, (long long)facts[i].wanted);
            return false;
        }
    return true;
}

/* The claim that the profile gate measures, in the code itself: what is not there cannot be executed. */
static bool judge_tensor(const struct cuda_manifest *manifest, const struct cuda_image *image, char *why, size_t size)
{
    if (image->arch > 90)
        return true;
    if (manifest->tensor == CUDA_TENSOR_NONE && image->mma + image->gmma > 0)
        snprintf(why, size, "it claims no tensor cores, and has %lld tensor instructions; write tensor = hmma, mma_qk and mma_pv",
                 (long long)(image->mma + image->gmma));
    else if (manifest->tensor == CUDA_TENSOR_HMMA && image->mma == 0)
        snprintf(why, size, "it claims tensor cores (hmma), and has not one instruction for them");
    else if (manifest->tensor == CUDA_TENSOR_GMMA && image->gmma == 0)
        snprintf(why, size, "it claims tensor cores (gmma), and has not one instruction for them");
    else
        return true;
    return false;
}

/* No register is written while a product reads it. */
static bool judge_listing(const struct cuda_product *product, char *why, size_t size)
{
    const struct cuda_listing *listing = &product->listing;
    if (listing->early > 0)
        snprintf(why, size,
                 "registers that a product under way still reads are written: %s%s; nothing may be written there before "
                 "wgmma.wait_group, and the assembler does not see to it",
                 listing->first, listing->early > 1 ? " and more" : "");
    return listing->early == 0;
}

bool cuda_spill_said(const struct cuda_ptxas *said, char *text, size_t size)
{
    if (said->spill_stores > 0 || said->spill_loads > 0)
        snprintf(text, size, "%s spills registers: %lld bytes stored and %lld loaded; allow more registers, or hold less at a time",
                 said->name, (long long)said->spill_stores, (long long)said->spill_loads);
    else if (said->stack > 0)
        snprintf(text, size, "%s has a stack frame of %lld bytes; index arrays with constants alone, in unrolled loops", said->name,
                 (long long)said->stack);
    else
        return false;
    return true;
}

static bool judge_memory(const struct cuda_product *product, char *why, size_t size)
{
    for (int i = 0; i < product->ptxas_count; i++) {
        const struct cuda_ptxas *said = &product->ptxas[i];
        const struct cuda_entry *entry = cuda_image_entry(&product->image, said->name);
        if (cuda_spill_said(said, why, size))
            return false;
        if (!entry || entry->registers != said->registers || entry->shared != said->shared) {
            snprintf(why, size, "the image and the assembler do not agree on the registers or the shared memory of %s", said->name);
            return false;
        }
    }
    for (int i = 0; i < product->image.entry_count; i++)
        if (product->image.entries[i].stack) {
            snprintf(why, size, "%s has a stack frame of %lld bytes; index arrays with constants alone, in unrolled loops",
                     product->image.entries[i].name, (long long)product->image.entries[i].stack);
            return false;
        }
    return true;
}

bool cuda_product_judge(const struct cuda_manifest *manifest, const struct cuda_product *product, char *why, size_t why_size)
{
    const int64_t *n = product->configuration.numbers;
    if (product->hidden[0]) {
        snprintf(why, why_size, "%s", product->hidden);
        return false;
    }
    if (!judge_shape(manifest, &product->image, why, why_size) || !judge_purity(manifest, product, why, why_size) ||
        !judge_facts(manifest, product, why, why_size) || !judge_tensor(manifest, &product->image, why, why_size) ||
        !judge_listing(product, why, why_size) || !judge_memory(product, why, why_size))
        return false;
    struct cuda_use use = cuda_measured(product);
    if (use.shared != n[CUDA_SHARED]) {
        snprintf(why, why_size,
                 "the manifest predicts %lld bytes of shared memory, and the image has %lld (%lld static, %lld dynamic)",
                 (long long)n[CUDA_SHARED], (long long)use.shared, (long long)(use.shared - product->image.facts.dynamic_shared),
                 (long long)product->image.facts.dynamic_shared);
        return false;
    }
    for (int i = 0; i < product->image.entry_count; i++)
        if (product->image.entries[i].registers > n[CUDA_THREAD_REGISTERS_MOST]) {
            snprintf(why, why_size, "%s uses %lld registers, and the manifest allows %lld", product->image.entries[i].name,
                     (long long)product->image.entries[i].registers, (long long)n[CUDA_THREAD_REGISTERS_MOST]);
            return false;
        }
    return true;
}
