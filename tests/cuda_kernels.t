#!/bin/sh
# The library's CUDA kernels without a GPU: each passes the emulation gate for one dtype and dim (ATTEST_TEST_LONG=1: for others as well),
# and bugs that are planted in it do not. kill_rate.t draws such bugs at random.
. tests/tap.sh
need g++ addr2line python3
attest=$BUILD/attest
long=${ATTEST_TEST_LONG:-}
seconds_for_right=2
[ -z "$long" ] || seconds_for_right=20

# copy NAME DTYPE DIM: the kernels in $work/kernels, of which cuda_fwd_NAME is for this dtype and dim alone.
copy() {
    rm -rf "$work/kernels"
    mkdir "$work/kernels"
    cp lib/cuda/kernels/*.cu lib/cuda/kernels/*.cuh "$work/kernels/"
    kernel=$work/kernels/cuda_fwd_$1.cu
    key='^ \* attest-cuda:'
    sed -i -e "/$key .*\[d$3[] ]/b" -e "/$key .*\[d[0-9]/d" -e "s/\($key dtypes *=\).*/\1 $2/;s/\($key dims *=\).*/\1 $3/" "$kernel"
}

# gate SECONDS [PROBLEM...]: the emulation gate of $kernel, on problems of all kinds that it takes, these among them.
gate() {
    seconds=$1
    shift
    printf '%s\n' "$@" > "$work/suite.txt"
    "$attest" prove "$kernel" --only emulation --seed 1 ${1:+--suite "$work/suite.txt"} --policy emulation_seconds="$seconds" \
        --state "$work/state" --json > "$work/json" 2> "$work/err"
    python3 -c 'import json; [print(gate["gate"], gate["verdict"], gate["sentence"]) for gate in json.load(open("'"$work/json"'"))["records"][0]["gates"]]'
    cat "$work/err"
}
passes() {
    gate "$@" > "$work/said"
    cat "$work/said"
    grep -q "^emulation PASS" "$work/said"
}
fails() {
    gate "$@" > "$work/said"
    cat "$work/said"
    grep -q "^emulation FAIL" "$work/said"
}

# right NAME DTYPE DIM
right() {
    copy "$1" "$2" "$3"
    check "cuda_fwd_$1 is right, $2 d$3" passes "$seconds_for_right"
}

# planted NAME DTYPE DIM FILE WORDS SED PROBLEM: a bug in a file of the kernel is found.
planted() {
    copy "$1" "$2" "$3"
    cp "$work/kernels/$4" "$work/before"
    sed -i "$6" "$work/kernels/$4"
    ! cmp -s "$work/before" "$work/kernels/$4"
    result $? "$5 is planted in cuda_fwd_$1"
    check "and is found" fails 20 "$7"
}

right scalar f32 64
right wmma f16 64
right sm80 bf16 128
right sm80_small bf16 64
right sm80_split f16 64
right sm90_heads bf16 128
right sm90_split f16 64
right simt f32 64
right sm90 f16 64
right sm90_many bf16 64
right sm90_short bf16 128

# The weights of up to eight rows are not rounded: in scores that are much alike nothing else shows. Rounded ones have an error of 1e-3.
copy sm90_split bf16 128
set -- fwd:bf16:b1:hq8:hkv1:sq1:skv60:d128:scale=0.01:o=f32 fwd:bf16:b1:hq4:hkv1:sq2:skv50:d128:causal:br:scale=0.02:o=f32 \
    fwd:bf16:b1:h4:sq1:skv700:d128:scale=0.2:o=f32
gate 4 "$@" > "$work/log"
python3 - "$work/json" >> "$work/log" 2>&1 << 'END'
import json, sys
gates = json.load(open(sys.argv[1]))["records"][0]["gates"]
errors = [p["max_error"] for p in gates[0]["details"]["problems"] if p["contents"] == "" and "o=f32" in p["problem"]]
print(errors)
sys.exit(len(errors) != 3 or not all(0 <= error < 1e-5 for error in errors))
END
result $? "cuda_fwd_sm90_split does not round the weights of up to eight rows"

planted sm90 f16 64 cuda_fwd_sm90.cu 'K given free before it has been read' \
    's/^        warp_arrive(k.barrier + KV_TO_FREE, more);//;s/^        wgmma_wait<1>();/        warp_arrive(k.barrier + KV_TO_FREE, more);\n&/' fwd:f16:b1:h1:sq80:skv600:d64
planted sm90 f16 64 attention_sm90.cuh 'a missing fence behind the blanking of V' \
    's|proxy_fence(); // written by threads.*||' fwd:f16:b1:h1:sq70:skv200:d64:causal
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'a copy before all warps have read' 's/== all - 1/== 0/' fwd:f16:b1:h1:sq128:skv1000:d64
planted sm90_many f16 64 cuda_fwd_sm90_many.cu 'half a block computed where more is seen' \
    's/modified ? KEYS - 1 : PART_KEYS - 1/0/' fwd:f16:b1:h1:s100:d64
planted sm90_heads f16 128 cuda_fwd_sm90_heads.cu "a tile's note written over before its end" 's/NOTES = 4/NOTES = 1/' fwd:f16:b1:h9:s300:d128
planted sm90_split f16 64 cuda_fwd_sm90_split.cu 'pieces read before they are there' \
    's|barrier_wait(shared_address(shared) + SENT, 0); // the pieces.*|;|' fwd:f16:b1:h1:sq4:skv1500:d64
planted sm80 f16 64 attention_sm80.cuh 'a wait for copies that is off by one' \
    's/cp_async_wait<STAGES - 2>();/cp_async_wait<STAGES - 1>();/' fwd:f16:b1:h1:s200:d64
planted sm80_split f16 64 cuda_fwd_sm80_split.cu 'pieces joined without their weights' \
    's/const float weight = share(state\[n\].x, most, unit);/const float weight = 1;/' fwd:f16:b1:h1:sq4:skv300:d64
planted simt f32 64 cuda_fwd_simt.cu 'a missing barrier behind the writing of V' \
    's|__syncthreads(); // V and P have been written||' fwd:f32:b1:h1:s200:d64
planted scalar f32 64 cuda_fwd_scalar.cu 'a missing rescale' 's|O_rmem\[q\]\[d\] \*= carry;|(void)carry;|' fwd:f32:b1:h1:s80:d64
[ -n "$long" ] || finish

for variant in "sm80 bf16 96" "sm80 f16 256" "sm80_small f16 128" "sm80_split bf16 128" "sm80_split bf16 192" "sm90_heads f16 96" "sm90_heads bf16 192" \
    "sm90_heads bf16 256" "sm90_heads f16 256" "sm90_split bf16 192" "scalar f16 64" "scalar bf16 128" "scalar f32 512" "simt f32 128" "sm90 bf16 96" \
    "sm90 bf16 128" "sm90 f16 192" "sm90 bf16 256" "sm90_many f16 64" "sm90_short f16 64"; do
    # shellcheck disable=SC2086
    right $variant
done
planted sm90 f16 256 cuda_fwd_sm90.cu "Q's place given free before it has been read" \
    's/^        warp_arrive(q.barrier + Q_TO_FREE, .*//;s/^        wgmma_wait<1>();/        warp_arrive(q.barrier + Q_TO_FREE, more \&\& here.block + 1 == here.part.end);\n&/' fwd:f16:b1:h7:sq80:skv50:d256
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'O of the other block read before it is there' \
    's|barrier_wait(sent, 0);||' fwd:f16:b1:h1:sq100:skv300:d64
planted sm90_short f16 64 attention_sm90.cuh 'heads that share tiles taken for a plain problem' \
    's/args.pack == 1 &&/true \&\&/' fwd:f16:b1:hq4:hkv1:s100:d64
planted sm90_many f16 64 cuda_fwd_sm90_many.cu 'a copy before all warps have read' 's/== all - 1/== 0/' fwd:f16:b1:h1:sq128:skv900:d64
planted sm90_heads f16 128 cuda_fwd_sm90_heads.cu 'keys left out that are seen' 's/left > MORE/left > MORE + 16/' fwd:f16:b1:h1:s110:d128
planted sm90_heads f16 256 cuda_fwd_sm90_heads.cu "Q's place given free before it has been read" \
    '/^    if (block + 1 == here.own_end)/{N;d};s/^    begin_scores<COUNT>(.*/    if (block + 1 == here.own_end)\n        warp_arrive(here.q_full + TO_FREE);\n&/' fwd:f16:b1:h7:sq80:skv50:d256
planted sm90_split f16 64 cuda_fwd_sm90_split.cu 'pieces joined without their weights' 's/share(end\[n\].x, most, unit)/1/' fwd:f16:b1:h1:sq4:skv1500:d64
planted sm90_split f16 64 cuda_fwd_sm90_split.cu 'pieces sent to blocks that may not have begun' \
    's|cluster_wait(); // all blocks have.*|;|' fwd:f16:b1:h1:sq1:skv1500:d64:causal
planted sm90_split f16 64 cuda_fwd_sm90_split.cu 'a copy before all warps have read' 's/barrier_wait(base + FREE .*//' fwd:f16:b1:h1:sq1:skv20000:d64
planted sm90_split f16 64 cuda_fwd_sm90_split.cu 'V behind the end of the keys that is not blanked' \
    's/^ *blank_key(v, key, lane);/;/' fwd:f16:b1:h1:sq1:skv100:d64:page=16,20
planted sm90_split f16 64 cuda_fwd_sm90_split.cu 'blocks of keys that do not begin where pages do' \
    's/ \/ TILE_KV \* TILE_KV//' fwd:f16:b2:hq4:hkv2:sq1:skv512:d64:br:wl=300:page=16,80
planted sm90 f16 64 cuda_fwd_sm90.cu 'S read before it is waited for' 's/wgmma_wait<1>();//' fwd:f16:b1:h1:s300:d64
planted sm90 f16 64 cuda_fwd_sm90.cu 'O read before it is waited for' 's/^        wgmma_wait<0>();//' fwd:f16:b1:h1:s300:d64
planted sm90 f16 64 cuda_fwd_sm90.cu 'V given free before it has been read' \
    's/^        warp_arrive(v.barrier + KV_TO_FREE, .*//;s/^        wgmma_wait<0>();/        warp_arrive(v.barrier + KV_TO_FREE, before.number >= 0);\n&/' fwd:f16:b1:h1:sq80:skv600:d64
planted sm90 f16 64 attention_sm90.cuh 'columns of O exchanged wrongly' \
    's/odd ? pairs\[i\] : pairs\[i + 1\], 1/odd ? pairs[i + 1] : pairs[i], 1/' fwd:f16:b1:h1:s80:d64
planted sm90 f16 64 cuda_fwd_sm90.cu 'a missing rescale' 's/^                rescale(O, carry);//' fwd:f16:b1:h1:s600:d64:scale=8
planted sm90 f16 64 cuda_fwd_sm90.cu 'weights that are too large for 16 bits' \
    's/const float weight = fminf(fmaxf.*/const float weight = 1e30f;/' fwd:f16:b1:h1:s600:d64:scale=8
planted sm90 f16 128 cuda_fwd_sm90.cu 'weights that are too large for 16 bits, by their sums' \
    's/const float weight = fminf(fmaxf.*/const float weight = 1e30f;/' fwd:f16:b1:h1:s600:d128:scale=8
planted sm90 f16 256 cuda_fwd_sm90.cu 'weights that are too large for 16 bits, by themselves' 's/beyond == 0/true/' fwd:f16:b1:h1:s600:d256:scale=8
planted sm90 f16 64 cuda_fwd_sm90.cu 'a wait for the wrong phase' 's/ FULL, 0, 0}, v = k/ FULL, 0, 1}, v = k/' fwd:f16:b1:h1:s300:d64
planted sm90 f16 64 cuda_fwd_sm90.cu "a copy into K's place without a wait" \
    's/barrier_wait(kv.barrier + KV_TO_FREE, kv.parity);//' fwd:f16:b1:h1:s600:d64
planted sm90 f16 64 cuda_fwd_sm90.cu "a tile's note written over before its end" 's/NOTES = 8/NOTES = 1/' fwd:f16:b1:h9:s300:d64
planted sm90 f16 64 cuda_fwd_sm90.cu 'sums that begin with those of the tile before' 's/^                rows_begin(rows);//' fwd:f16:b1:h9:s300:d64
planted sm90 f16 64 cuda_fwd_sm90.cu 'O that begins with that of the tile before' 's/fresh = last;/fresh = false;/' fwd:f16:b1:h9:s300:d64
planted sm90 f16 64 cuda_fwd_sm90.cu 'a block of V left to others without a word' \
    's/warp_arrive(left.barrier + KV_TO_FREE);//' fwd:f16:b1:h9:s400:d64:causal
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'barriers waited at before they are there' \
    's|__syncthreads(); // the barriers are there||;s|cluster_wait(); .*||' fwd:f16:b1:h1:s100:d64
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'what is sent to a block that may not have begun' \
    's|cluster_wait(); .*||' fwd:f16:b1:h1:sq300:skv20:d64:causal:br
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'scores read before they are there' '0,/wgmma_wait<0>();/s/wgmma_wait<0>();//' fwd:f16:b1:h1:s300:d64
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'm and l of the other block read before they are there' \
    's|barrier_wait(ended, 0);||' fwd:f16:b1:h1:s300:d64
planted sm90_short f16 64 cuda_fwd_sm90_short.cu "the row sent that is the other block's own" \
    's/rank ? make_float2/!rank ? make_float2/' fwd:f16:b1:h1:s300:d64
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'a missing rescale' 's/^ *rescale(O, carry);/;/' fwd:f16:b1:h1:s700:d64:scale=2
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'half a block left out' 's/^ *attend_block<kind, 1>.*/;/' fwd:f16:b1:h1:s384:d64
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'a block of keys counted before it is there' \
    's|barrier_wait(scene.base + K_FULL + 8 \* place, parity);||' fwd:f16:b1:h1:s1500:d64:causal
planted sm90_short f16 64 cuda_fwd_sm90_short.cu 'a block that ends while Q is on its way' \
    's|barrier_wait(.*// a block must not end.*||' fwd:f16:b1:h1:sq100:skv50:d64
planted sm90_short f16 64 attention_sm90.cuh 'a wrong number of bytes announced' \
    's/(keys + rows - 1) \/ rows \* rows \* PITCH/keys * PITCH/' fwd:f16:b1:h1:sq100:skv100:d64:page=16,20
planted sm90_many f16 64 cuda_fwd_sm90_many.cu 'barriers waited at before they are there' \
    's|__syncthreads(); // the barriers are there||' fwd:f16:b1:h1:s100:d64
planted sm90_many f16 64 cuda_fwd_sm90_many.cu 'a stage that nobody fills again' 's/== all - 1/== all/' fwd:f16:b1:h1:sq128:skv900:d64
planted sm90_many f16 64 cuda_fwd_sm90_many.cu 'a missing rescale' 's/^ *rescale(O, carry);/;/' fwd:f16:b1:h1:s300:d64:scale=2
planted sm90_many f16 64 attention_sm90.cuh 'a missing barrier behind the blanking of V' \
    '/proxy_fence(); \/\/ written by/{n;d}' fwd:f16:b1:h1:sq130:skv200:d64:causal
planted sm90_many f16 64 cuda_fwd_sm90_many.cu 'V that is not blanked' 's/^        blank(k_at .*/        ;/' fwd:f16:b1:h1:sq70:skv200:d64:causal
planted sm90_many f16 64 cuda_fwd_sm90_many.cu 'scores read before they are there' '0,/wgmma_wait<0>();/s/wgmma_wait<0>();//' fwd:f16:b1:h1:s100:d64
planted sm90_heads f16 128 cuda_fwd_sm90_heads.cu 'V given free before it has been read' \
    '/^    warp_arrive(v.full + TO_FREE);/{s/.*/;/;:a;n;ba};s/^    begin_output(O, P, .*/&\n    warp_arrive(v.full + TO_FREE);/' fwd:f16:b1:h2:s380:d128
planted sm90_heads f16 128 cuda_fwd_sm90_heads.cu 'a missing rescale' 's/^ *rescale(O, carry);/;/' fwd:f16:b1:h1:s380:d128:scale=2
planted sm90_heads f16 128 cuda_fwd_sm90_heads.cu 'V that is not blanked' 's/^        blank(v.at, .*/        ;/' fwd:f16:b1:h1:sq70:skv200:d128:causal
planted sm90_heads f16 256 cuda_fwd_sm90_heads.cu 'a set of heads that is not whole taken for one' \
    's/min(order.together, args.batch \* args.slots - first)/order.together/' fwd:f16:b1:h3:s600:d256:causal
planted sm90_heads f16 256 cuda_fwd_sm90_heads.cu 'a last tile that is not the last' 's/>= args.tiles;/>= args.tiles - 1;/' fwd:f16:b1:h7:s100:d256
planted sm80 f16 64 attention_sm80.cuh 'a missing barrier' '/cp_async_wait<STAGES - 2>();/{n;s/__syncthreads();//}' fwd:f16:b1:h1:s200:d64
planted sm80 f16 64 attention_sm80.cuh 'a chunk at the wrong place' \
    's/return (at ^ (2 \* pair % GROUP << 4))/return (at + (2 * pair % GROUP << 4))/' fwd:f16:b1:h1:s80:d64
planted sm80 f16 64 attention_sm80.cuh 'a missing rescale' 's/O\[m\]\[n\]\[e\] \*= carry\[m\]\[e \/ 2\];/(void)carry;/' fwd:f16:b1:h1:s80:d64
planted sm80 f16 64 attention_sm80.cuh 'a sum that drifts by the rounding of its maximum' \
    's/__fmul_rn(rows.m\[m\]\[half\], c) - base/fmaf(rows.m[m][half], c, -base)/' fwd:f16:b1:h1:sq1:skv4000:d64:lse
planted simt f32 64 cuda_fwd_simt.cu 'a missing barrier behind the reading of K' 's|__syncthreads(); // K has been read||' fwd:f32:b1:h1:s200:d64
planted simt f32 64 cuda_fwd_simt.cu 'a wait for copies that is off by one' 's|copies_wait<1>();|copies_wait<2>();|' fwd:f32:b1:h1:s200:d64
planted simt f32 64 cuda_fwd_simt.cu 'groups joined without their weights' \
    's|fmaf(weight, part(more, d), o\[d\])|o[d] + part(more, d)|' fwd:f32:b1:h1:s200:d64
planted scalar f32 64 cuda_fwd_scalar.cu 'a missing barrier' 's|__syncthreads(); // K has been read||' fwd:f32:b1:h1:s80:d64
planted scalar f32 64 cuda_fwd_scalar.cu 'another missing barrier' 's|__syncthreads(); // V has been written||' fwd:f32:b1:h1:s80:d64
planted scalar f32 64 cuda_fwd_scalar.cu 'a missing tail mask' \
    's|bool visible = r < tile.row_end \&\& j >= row.begin \&\& j < row.end;|bool visible = r < tile.row_end;|' fwd:f32:b1:h1:s80:d64
finish
