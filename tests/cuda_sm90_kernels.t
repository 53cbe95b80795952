#!/bin/sh
# The library's kernels for Hopper without a GPU, as in cuda_tensor_kernels.t: wgmma, bulk copies, barriers in shared memory and clusters
# are emulated (tests/cuda/ptx_sm90.cuh).
. tests/tap.sh
need g++

export EMULATED_CACHE="$work" BUILD CC
long=${ATTEST_TEST_LONG:-}

for variant in "sm90 sm_90a f16 64" "sm90_many sm_90a bf16 64" "sm90_heads sm_90a bf16 128" "sm90_heads sm_90a f16 256" "sm90_short sm_90a bf16 128" "sm90_split sm_90 f16 64" \
    ${long:+"sm90 sm_90a bf16 96" "sm90 sm_90a bf16 128" "sm90 sm_90a f16 192" "sm90 sm_90a bf16 256" "sm90_many sm_90a f16 64" "sm90_heads sm_90a f16 96" "sm90_heads sm_90a bf16 192" "sm90_heads sm_90a bf16 256" "sm90_short sm_90a f16 64" "sm90_split sm_90 bf16 192"}; do
    # shellcheck disable=SC2086
    set -- $variant
    check "cuda_fwd_$1 is right, $3 d$4" env EMULATED_PROGRAM="$work/$1.$3.$4" tests/cuda/emulate.sh "lib/cuda/kernels/cuda_fwd_$1.cu" "$2" "$3" "$4"
done
check "cuda_fwd_sm90 is right on some problems, bf16 d128" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90.cu sm_90a bf16 128 \
    fwd:bf16:b2:hq4:hkv2:sq140:skv300:d128:causal:br:lse fwd:bf16:b2:h2:sq70:skv260:d128:lens:page=32,20 fwd:bf16:b1:h6:s130:d112:softcap=5:wl=60
check "cuda_fwd_sm90 is right where the maximum rises again and again" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90.cu sm_90a f16 128 \
    fwd:f16:b1:h2:s600:d128:scale=8:lse fwd:f16:b1:h2:s600:d128:scale=3:causal fwd:f16:b1:h1:s600:d128:scale=-8 fwd:f16:b1:h1:s600:d128:scale=100:wl=200
# Q has one place; the last problem has tiles without keys between others.
check "cuda_fwd_sm90 is right on some problems, f16 d192" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90.cu sm_90a f16 192 \
    fwd:f16:b1:hq8:hkv2:s200:d192:causal:lse fwd:f16:b1:h8:sq300:skv20:d192:wl=10 fwd:f16:b1:h1:s500:d192:scale=8:lse
# More blocks of keys than stages; tiles whose last rows are those of one warpgroup; a warpgroup that leaves a block, or half of one.
check "cuda_fwd_sm90_many is right where stages are filled again" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90_many.cu sm_90a f16 64 \
    fwd:f16:b1:h2:s900:d64:causal:lse fwd:f16:b1:h1:sq130:skv1000:d64 fwd:f16:b1:hq4:hkv2:sq140:skv700:d64:wl=300:lse \
    fwd:f16:b2:h1:sq70:skv600:d64:page=32,40:lens fwd:f16:b1:h1:sq200:skv650:d40:causal:br:softcap=5 fwd:f16:b1:h1:s300:d64:scale=-0.1:causal fwd:f16:b1:h1:s400:d64:scale=2:lse
# Blocks with several tiles; one, two and three blocks of keys, of which a warpgroup sees all, 96, 64 or none; tiles without keys; heads that share tiles; rounds that begin with
# another tile of a head.
check "cuda_fwd_sm90_heads is right from tile to tile" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90_heads.cu sm_90a f16 128 \
    fwd:f16:b3:h5:s384:d128 fwd:f16:b2:h3:s380:d128:causal:lse fwd:f16:b2:h9:s197:d128 fwd:f16:b5:h7:s100:d128 fwd:f16:b1:h9:sq300:skv20:d128:wl=10 \
    fwd:f16:b1:h5:s520:d128:causal fwd:f16:b2:hq6:hkv2:s97:d120:softcap=5:lse fwd:f16:b1:h3:s380:d128:scale=8 fwd:f16:b1:h2:sq60:skv900:d128:causal:br:sink
# Q has one place; three blocks of keys are more than there is room for, and of the last a warpgroup sees all, 64, 32 or none; tiles
# in sets of heads, of which the last is not whole.
check "cuda_fwd_sm90_heads is right from tile to tile, f16 d256" env EMULATED_PROGRAM="$work/sm90_heads.f16.256" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90_heads.cu sm_90a f16 256 \
    fwd:f16:b1:h9:s300:d256 fwd:f16:b1:h3:s600:d256:causal:lse fwd:f16:b1:h9:sq300:skv20:d256:wl=10 \
    fwd:f16:b2:hq8:hkv2:s97:d200:softcap=5:lse fwd:f16:b1:h3:s310:d248:scale=8 fwd:f16:b1:h2:sq60:skv500:d256:causal:br:sink
# Places that are filled again, also by a warpgroup that has left off; halves of blocks; tiles that follow each other; one tile, and no key.
check "cuda_fwd_sm90_short is right where places are filled again" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90_short.cu sm_90a f16 64 \
    fwd:f16:b1:h1:s1500:d64:causal:lse fwd:f16:b1:h1:s1500:d64:causal fwd:f16:b1:h1:sq130:skv1000:d64 fwd:f16:b1:h2:s900:d64:wl=100 \
    fwd:f16:b2:h1:sq300:skv700:d64:page=32,40:lens fwd:f16:b1:h3:s384:d40 fwd:f16:b1:h2:sq60:skv50:d64 fwd:f16:b1:h1:sq200:skv20:d64:wl=10 \
    fwd:f16:b1:hq4:hkv2:sq100:skv600:d64:causal:br:softcap=5 fwd:f16:b1:h1:s700:d64:scale=8:lse
# Eight and sixteen pieces; a ring that goes round; pages with a window that does not begin at one.
check "cuda_fwd_sm90_split joins many pieces" env EMULATED_PROGRAM="$work/sm90_split.bf16.128" tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90_split.cu sm_90 bf16 128 \
    fwd:bf16:b1:hq4:hkv1:sq3:skv1500:d128:lse:sink fwd:bf16:b1:h1:sq1:skv2100:d128:causal:br:lens fwd:bf16:b1:h1:sq1:skv8500:d128:lse \
    fwd:bf16:b2:hq4:hkv2:sq1:skv512:d128:br:wl=300:page=16,80:lse:lens
# Scores so much alike that only the rounding of weights shows.
check "cuda_fwd_sm90_split does not round the weights of up to eight rows" env EMULATED_WHOLE_P=1 EMULATED_PROGRAM="$work/sm90_split.bf16.128" \
    tests/cuda/emulate.sh lib/cuda/kernels/cuda_fwd_sm90_split.cu sm_90 bf16 128 \
    fwd:bf16:b1:hq8:hkv1:sq1:skv60:d128:scale=0.01:o=f32 fwd:bf16:b1:hq4:hkv1:sq2:skv50:d128:causal:br:scale=0.02:o=f32 fwd:bf16:b1:h4:sq1:skv700:d128:scale=0.2:o=f32

. tests/cuda/mutant.sh
kernel=cuda_fwd_sm90.cu arch=sm_90a
mutant $kernel "K given free before it has been read" \
    's/^        warp_arrive(k.barrier + KV_TO_FREE, more);//;s/^        wgmma_wait<1>();/        warp_arrive(k.barrier + KV_TO_FREE, more);\n&/' fwd:f16:b1:h1:sq80:skv600:d64
mutant attention_sm90.cuh "a missing fence behind the blanking of V" 's|proxy_fence(); // written by threads.*||' fwd:f16:b1:h1:sq70:skv200:d64:causal
dim=256 mutant $kernel "Q's place given free before it has been read" \
    's/^        warp_arrive(q.barrier + Q_TO_FREE, .*//;s/^        wgmma_wait<1>();/        warp_arrive(q.barrier + Q_TO_FREE, more \&\& here.block + 1 == here.part.end);\n&/' fwd:f16:b1:h7:sq80:skv50:d256
kernel=cuda_fwd_sm90_short.cu
mutant $kernel "a copy before all warps have read" 's/== all - 1/== 0/' fwd:f16:b1:h1:sq128:skv1000:d64
mutant $kernel "O of the other block read before it is there" 's|barrier_wait(sent, 0);||' fwd:f16:b1:h1:sq100:skv300:d64
mutant attention_sm90.cuh "heads that share tiles taken for a plain problem" 's/args.pack == 1 &&/true \&\&/' fwd:f16:b1:hq4:hkv1:s100:d64
kernel=cuda_fwd_sm90_many.cu
mutant $kernel "a copy before all warps have read" 's/== all - 1/== 0/' fwd:f16:b1:h1:sq128:skv900:d64
mutant $kernel "half a block computed where more is seen" 's/modified ? KEYS - 1 : PART_KEYS - 1/0/' fwd:f16:b1:h1:s100:d64
kernel=cuda_fwd_sm90_heads.cu
dim=128 mutant $kernel "a tile's note written over before its end" 's/NOTES = 4/NOTES = 1/' fwd:f16:b1:h9:s300:d128
dim=128 mutant $kernel "keys left out that are seen" 's/left > MORE/left > MORE + 16/' fwd:f16:b1:h1:s110:d128
dim=256 mutant $kernel "Q's place given free before it has been read" \
    '/^    if (block + 1 == here.own_end)/{N;d};s/^    begin_scores<COUNT>(.*/    if (block + 1 == here.own_end)\n        warp_arrive(here.q_full + TO_FREE);\n&/' fwd:f16:b1:h7:sq80:skv50:d256
kernel=cuda_fwd_sm90_split.cu arch=sm_90
mutant $kernel "pieces read before they are there" 's|barrier_wait(shared_address(shared) + SENT, 0); // the pieces.*|;|' fwd:f16:b1:h1:sq4:skv1500:d64
EMULATED_WHOLE_P=1 dtype=bf16 mutant $kernel "what rounding left of weights keeps an old maximum" 's/^        step.carry\[0\]\[1\] = step.carry\[0\]\[0\];/;/' \
    fwd:bf16:b1:h4:sq1:skv700:d64:scale=0.3:o=f32
[ -n "$long" ] || finish

mutant $kernel "pieces joined without their weights" 's/share(end\[n\].x, most)/1/' fwd:f16:b1:h1:sq4:skv1500:d64
mutant $kernel "pieces sent to blocks that may not have begun" 's|cluster_wait(); // all blocks have.*|;|' fwd:f16:b1:h1:sq1:skv1500:d64:causal
mutant $kernel "a copy before all warps have read" 's/barrier_wait(base + FREE .*//' fwd:f16:b1:h1:sq1:skv20000:d64
mutant $kernel "V behind the end of the keys that is not blanked" 's/^ *blank_key(v, key, lane);/;/' fwd:f16:b1:h1:sq1:skv100:d64:page=16,20
mutant $kernel "blocks of keys that do not begin where pages do" 's/ \/ TILE_KV \* TILE_KV//' fwd:f16:b2:hq4:hkv2:sq1:skv512:d64:br:wl=300:page=16,80
kernel=cuda_fwd_sm90.cu arch=sm_90a
mutant $kernel "S read before it is waited for" 's/wgmma_wait<1>();//' fwd:f16:b1:h1:s300:d64
mutant $kernel "O read before it is waited for" 's/^        wgmma_wait<0>();//' fwd:f16:b1:h1:s300:d64
mutant $kernel "V given free before it has been read" \
    's/^        warp_arrive(v.barrier + KV_TO_FREE, .*//;s/^        wgmma_wait<0>();/        warp_arrive(v.barrier + KV_TO_FREE, before.number >= 0);\n&/' fwd:f16:b1:h1:sq80:skv600:d64
mutant attention_sm90.cuh "columns of O exchanged wrongly" 's/odd ? pairs\[i\] : pairs\[i + 1\], 1/odd ? pairs[i + 1] : pairs[i], 1/' fwd:f16:b1:h1:s80:d64
mutant $kernel "a missing rescale" 's/^                rescale(O, carry);//' fwd:f16:b1:h1:s600:d64:scale=8
mutant $kernel "weights that are too large for 16 bits" 's/const float weight = fminf(fmaxf.*/const float weight = 1e30f;/' fwd:f16:b1:h1:s600:d64:scale=8
dim=128 mutant $kernel "weights that are too large for 16 bits, by their sums" 's/const float weight = fminf(fmaxf.*/const float weight = 1e30f;/' fwd:f16:b1:h1:s600:d128:scale=8
dim=256 mutant $kernel "weights that are too large for 16 bits, by themselves" 's/beyond == 0/true/' fwd:f16:b1:h1:s600:d256:scale=8
mutant $kernel "a wait for the wrong phase" 's/ FULL, 0, 0}, v = k/ FULL, 0, 1}, v = k/' fwd:f16:b1:h1:s300:d64
mutant $kernel "a copy into K's place without a wait" 's/barrier_wait(kv.barrier + KV_TO_FREE, kv.parity);//' fwd:f16:b1:h1:s600:d64
mutant $kernel "a tile's note written over before its end" 's/NOTES = 8/NOTES = 1/' fwd:f16:b1:h9:s300:d64
mutant $kernel "sums that begin with those of the tile before" 's/^                rows_begin(rows);//' fwd:f16:b1:h9:s300:d64
mutant $kernel "O that begins with that of the tile before" 's/fresh = last;/fresh = false;/' fwd:f16:b1:h9:s300:d64
mutant $kernel "a block of V left to others without a word" 's/warp_arrive(left.barrier + KV_TO_FREE);//' fwd:f16:b1:h9:s400:d64:causal
kernel=cuda_fwd_sm90_short.cu
mutant $kernel "barriers waited at before they are there" 's|__syncthreads(); // the barriers are there||;s|cluster_wait(); .*||' fwd:f16:b1:h1:s100:d64
mutant $kernel "what is sent to a block that may not have begun" 's|cluster_wait(); .*||' fwd:f16:b1:h1:sq300:skv20:d64:causal:br
mutant $kernel "scores read before they are there" '0,/wgmma_wait<0>();/s/wgmma_wait<0>();//' fwd:f16:b1:h1:s300:d64
mutant $kernel "m and l of the other block read before they are there" 's|barrier_wait(ended, 0);||' fwd:f16:b1:h1:s300:d64
mutant $kernel "the row sent that is the other block's own" 's/rank ? make_float2/!rank ? make_float2/' fwd:f16:b1:h1:s300:d64
mutant $kernel "a missing rescale" 's/^ *rescale(O, carry);/;/' fwd:f16:b1:h1:s700:d64:scale=2
mutant $kernel "half a block left out" 's/^ *attend_block<kind, 1>.*/;/' fwd:f16:b1:h1:s384:d64
mutant $kernel "a block of keys counted before it is there" 's|barrier_wait(scene.base + K_FULL + 8 \* place, parity);||' fwd:f16:b1:h1:s1500:d64:causal
mutant $kernel "a block that ends while Q is on its way" 's|barrier_wait(.*// a block must not end.*||' fwd:f16:b1:h1:sq100:skv50:d64
mutant attention_sm90.cuh "a wrong number of bytes announced" 's/(keys + rows - 1) \/ rows \* rows \* PITCH/keys * PITCH/' fwd:f16:b1:h1:sq100:skv100:d64:page=16,20
kernel=cuda_fwd_sm90_many.cu
mutant $kernel "barriers waited at before they are there" 's|__syncthreads(); // the barriers are there||' fwd:f16:b1:h1:s100:d64
mutant $kernel "a stage that nobody fills again" 's/== all - 1/== all/' fwd:f16:b1:h1:sq128:skv900:d64
mutant $kernel "a missing rescale" 's/^ *rescale(O, carry);/;/' fwd:f16:b1:h1:s300:d64:scale=2
mutant attention_sm90.cuh "a missing barrier behind the blanking of V" '/proxy_fence(); \/\/ written by/{n;d}' fwd:f16:b1:h1:sq130:skv200:d64:causal
mutant $kernel "V that is not blanked" 's/^        blank(k_at .*/        ;/' fwd:f16:b1:h1:sq70:skv200:d64:causal
mutant $kernel "scores read before they are there" '0,/wgmma_wait<0>();/s/wgmma_wait<0>();//' fwd:f16:b1:h1:s100:d64
kernel=cuda_fwd_sm90_heads.cu
dim=128 mutant $kernel "V given free before it has been read" \
    '/^    warp_arrive(v.full + TO_FREE);/{s/.*/;/;:a;n;ba};s/^    begin_output(O, P, .*/&\n    warp_arrive(v.full + TO_FREE);/' fwd:f16:b1:h2:s380:d128
dim=128 mutant $kernel "a missing rescale" 's/^ *rescale(O, carry);/;/' fwd:f16:b1:h1:s380:d128:scale=2
dim=128 mutant $kernel "V that is not blanked" 's/^        blank(v.at, .*/        ;/' fwd:f16:b1:h1:sq70:skv200:d128:causal
dim=256 mutant $kernel "a set of heads that is not whole taken for one" 's/min(order.together, args.batch \* args.slots - first)/order.together/' fwd:f16:b1:h3:s600:d256:causal
dim=256 mutant $kernel "a last tile that is not the last" 's/>= args.tiles;/>= args.tiles - 1;/' fwd:f16:b1:h7:s100:d256
check "a kernel with bulk copies and wgmma is right, f16 d128" tests/cuda/emulate.sh tests/cuda/sample_sm90.cu sm_90a f16 128
kernel=sample_sm90.cu arch=sm_90a
mutant sample_sm90.cu "a load into a buffer in use" 's/barrier_wait(barriers.empty(stage), .*//' fwd:f16:b1:h1:s300:d64
mutant sample_sm90.cu "a missing fence before a bulk store" 's|proxy_fence();         // O is there.*||' fwd:f16:b1:h1:s80:d64
mutant sample_sm90.cu "a wait for the wrong phase" 's/barrier_wait(barriers.full(stage), .*/barrier_wait(barriers.full(stage), (block \/ STAGES \& 1) ^ 1);/' fwd:f16:b1:h1:s300:d64
mutant sample_sm90.cu "a product that is not waited for" 's|wgmma_wait<0>(); // S is there||' fwd:f16:b1:h1:s80:d64
mutant sample_sm90.cu "a missing barrier before a bulk store" 's|named_barrier(1, 128); // O has been written||' fwd:f16:b1:h1:s80:d64
finish
