# attest: `make help` lists the targets. Everything is built below $(BUILD); CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR, V=1 are yours.

VERSION := $(shell sed -n 's/^.define ATTEST_VERSION_[A-Z]* \([0-9]*\)/\1/p' include/attest.h | paste -sd.)
SOMAJOR := $(firstword $(subst ., ,$(VERSION)))
BUILD   ?= build
PREFIX  ?= /usr/local
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
CROSS   := $(filter %-,$(patsubst %gcc,%,$(firstword $(CC))))
AR      := $(CROSS)ar
LD      := $(CROSS)ld
OBJCOPY := $(CROSS)objcopy
CFLAGS  ?= -O2 -g
WERROR  ?= -Werror
JOBS    ?= $(shell nproc)
NVCC    ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
FATBINARY ?= $(if $(wildcard $(dir $(NVCC))fatbinary),$(dir $(NVCC))fatbinary,fatbinary)
HOSTCC  ?= gcc
CXX     := $(if $(filter default,$(origin CXX)),$(CROSS)g++,$(CXX))
HAS_CXX := $(shell command -v $(firstword $(CXX)))
comma   := ,
EMULATED_DRIVER = $(BUILD)/obj/emulated_cuda.so
Q       := $(if $(V),,@)

ARCH    := $(shell $(CC) -dumpmachine | cut -d- -f1)
WARN    := -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes $(WERROR)
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE $(WARN) -Iinclude -fPIC -fopenmp -fvisibility=hidden -MMD -MP $(CFLAGS)

# ---- what is built from what ------------------------------------------------------------------------------------------------
LIB_SRC  := $(wildcard lib/*.c lib/ref/*.c lib/cuda/*.c) $(filter-out lib/cpu/cpu_fwd_%.c,$(wildcard lib/cpu/*.c)) lib/cpu/cpu_fwd_scalar.c
# One kernel file per instruction set, compiled with the flags that its first comment names and those of no other.
X86_KERNELS := avx2 avx512 avx512bf16 amx
flags_of = $(shell sed -n 's/^ \* attest-flags: //p' $(1))
ifeq ($(ARCH),x86_64)
LIB_SRC += $(X86_KERNELS:%=lib/cpu/cpu_fwd_%.c)
endif
# CUDA kernels, where there is an nvcc, or where their images are already (make NVCC= does without). Several build folders may share
# the images.
CUDA_IMAGES ?= $(BUILD)/cuda
CUDA_HERE   := $(or $(NVCC),$(if $(findstring command,$(origin NVCC)),,$(wildcard $(CUDA_IMAGES)/images.c)))
CUDA_STEMS  := $(if $(CUDA_HERE),$(shell sed -nE 's/^(KERNEL|CANDIDATE)\(([a-z]*), *[A-Z0-9]*, *([a-z0-9_]*)\)/\2_\3/p' lib/cuda/kernels.def | awk '!seen[$$0]++'))
CUDA_SRC    := $(CUDA_STEMS:%=lib/cuda/kernels/cuda_%.cu)
TOOL_SRC := $(wildcard tool/*.c tool/*/*.c)
TEST_SRC := $(wildcard tests/test_*.c)
FUZZ_SRC := $(wildcard tests/fuzz_*.c)

obj      = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB_OBJ := $(call obj,$(LIB_SRC)) $(if $(CUDA_SRC),$(BUILD)/obj/cuda_images.o)
SHARED  := $(BUILD)/libattest.so.$(VERSION)
STATIC  := $(BUILD)/libattest.a
TESTS   := $(TEST_SRC:tests/%.c=$(BUILD)/tests/%)
FUZZERS := $(FUZZ_SRC:tests/%.c=$(BUILD)/tests/%)
COUNTING := $(BUILD)/tests/test_allocations $(BUILD)/tests/test_cuda_calls
BUILD_ID := $(shell cat $(sort $(wildcard include/*.h lib/*.[ch] lib/*/*.[ch] lib/*.def lib/*/*.def lib/cuda/kernels/*)) | sha256sum | cut -c1-12)

.PHONY: all lib tool-tests test test-long prove bench-peers install uninstall clean help format check-format tests
.DEFAULT_GOAL := all

all: $(BUILD)/attest $(SHARED) $(STATIC) cuda-note  ## build/attest, build/libattest.so.* and build/libattest.a
lib: $(SHARED) $(STATIC)
tests: $(BUILD)/bench/host_cost $(BUILD)/bench/turns $(TESTS) $(FUZZERS)

.PHONY: cuda-note
cuda-note:
	$(if $(CUDA_HERE),,@test -e $(BUILD)/.cpu-only || { echo "attest: no nvcc here: CPU-only build"; touch $(BUILD)/.cpu-only; })

# ---- rules ------------------------------------------------------------------------------------------------------------------
# Kernels and the oracle are numerical code: always -O3, whatever CFLAGS says first, and contraction is chosen, not left to taste.
$(BUILD)/obj/lib/cpu/%.o: ALL_CFLAGS += -O3
$(BUILD)/obj/lib/ref/%.o: ALL_CFLAGS += -O3 -ffp-contract=off
$(foreach isa,scalar $(X86_KERNELS),$(eval $(BUILD)/obj/lib/cpu/cpu_fwd_$(isa).o: ALL_CFLAGS += $(call flags_of,lib/cpu/cpu_fwd_$(isa).c)))
$(BUILD)/obj/tool/%.o: ALL_CFLAGS += -Itool
$(BUILD)/obj/lib/context.o: ALL_CFLAGS += -DATTEST_BUILD_ID='"$(BUILD_ID)"'
$(BUILD)/obj/lib/context.o: include/attest.h $(LIB_SRC) $(wildcard lib/cuda/kernels/*)
$(BUILD)/obj/lib/cuda/table.o: ALL_CFLAGS += $(if $(CUDA_SRC),-DATTEST_CUDA_KERNELS)
$(BUILD)/obj/lib/cuda/table.o: $(BUILD)/obj/cuda_stems
$(BUILD)/obj/tool/base/embedded.o: ALL_CFLAGS += -DEMULATED_DRIVER='"$(EMULATED_DRIVER)"'
$(BUILD)/obj/tool/base/embedded.o: $(EMULATED_DRIVER) $(wildcard tool/emulation/device/*) $(wildcard include/*.h include/attest/*.cuh suites/*.txt tool/report/*.css templates/*) lib/cuda/kernels/cuda_fwd_scalar.cu

# Kernels are compiled from the text that the gates compile, which is preprocessed with the flags of tool/build/build.c and no others: no
# macro tells the library's build from the one that is proven. The entry function is for the gates alone, and becomes local. Where
# variables are in code that is inlined and unrolled so much takes more room than the library: of kernels a plain -g keeps lines alone.
KERNEL_TEXT_FLAGS := -std=c11 -D_GNU_SOURCE -DATTEST_STANDALONE -O3 -fPIC -Iinclude
$(BUILD)/obj/lib/cpu/cpu_fwd_%.o: lib/cpu/cpu_fwd_%.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$(Q)$(CC) $(KERNEL_TEXT_FLAGS) $(call flags_of,$<) -MMD -MP -MF $(@:.o=.d) -MT $@ -E -C $< -o $(@:.o=.i)
	$(Q)$(CC) $(patsubst -g,-g1,$(filter-out -MMD -MP,$(ALL_CFLAGS))) -c $(@:.o=.i) -o $@
	$(Q)$(OBJCOPY) --localize-symbol=attest_cpu_kernel_entry $@

$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

# ---- the emulated CUDA driver, which the workbench carries; empty where there is no C++ compiler --------------------------------
EMULATION_OBJ := $(patsubst %.cpp,$(BUILD)/obj/%.o,$(wildcard tool/emulation/runtime/*.cpp))
$(BUILD)/obj/tool/emulation/runtime/%.o: tool/emulation/runtime/%.cpp $(wildcard tool/emulation/runtime/*.h tool/emulation/runtime/*.def) tool/emulation/device/emulated_device.h Makefile
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CXX  $<")
	$(Q)$(CXX) -std=c++17 -O2 -Wall -Wextra $(WERROR) -fPIC -U_FORTIFY_SOURCE -ffp-contract=off -fno-trapping-math -fno-math-errno $(EMULATION_CXXFLAGS) -c $< -o $@
$(BUILD)/obj/tool/emulation/runtime/tensor_core.o: EMULATION_CXXFLAGS += -O3
$(EMULATED_DRIVER): $(if $(HAS_CXX),$(EMULATION_OBJ))
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CXX  $@")
	$(Q)$(if $(HAS_CXX),$(CXX) -shared -Wl$(comma)-soname$(comma)libcuda.so.1 -static-libstdc++ -static-libgcc -o $@ $^ -ldl -lm,: > $@)

# ---- CUDA images --------------------------------------------------------------------------------------------------------------
# A program reads the manifests and writes a makefile with a rule for each image, and then a table with all of them embedded. Both
# are done every time, under a lock, and leave files alone that stay the same.
IMAGES_PROGRAM := $(CUDA_IMAGES)/cuda_images
IMAGES_SRC := scripts/cuda_images.c $(addprefix tool/cuda/cuda_,manifest.c expression.c configure.c resources.c image.c) tool/base/nearest_word.c
$(IMAGES_PROGRAM): $(IMAGES_SRC) $(wildcard tool/cuda/*.h tool/cuda/*.def) include/attest_kernel_cuda.h
	@mkdir -p $(@D)
	$(if $(V),,@echo "  HOSTCC  $@")
	$(Q)$(HOSTCC) -std=c11 -D_GNU_SOURCE -O1 -Iinclude -Itool $(IMAGES_SRC) -ljansson -o $@

update = { cmp -s $(1).new $(1) && rm $(1).new || mv $(1).new $(1); }
.PHONY: FORCE
$(CUDA_IMAGES)/images.c: $(IMAGES_PROGRAM) FORCE
	@case "$$MAKEFLAGS" in *jobserver*) jobs=;; *) jobs=-j$(JOBS);; esac; \
	    exec 9> $(CUDA_IMAGES)/lock && flock 9 && \
	    $(IMAGES_PROGRAM) rules $(CUDA_IMAGES) $(CUDA_SRC) > $(CUDA_IMAGES)/rules.mk.new && $(call update,$(CUDA_IMAGES)/rules.mk) && \
	    $(MAKE) --no-print-directory $$jobs -f $(CUDA_IMAGES)/rules.mk NVCC="$(or $(NVCC),nvcc)" FATBINARY="$(FATBINARY)" Q=$(Q) images 9>&- && \
	    $(IMAGES_PROGRAM) table $(CUDA_IMAGES) $(CUDA_SRC) > $@.new && $(call update,$@)

$(BUILD)/obj/cuda_images.o: $(CUDA_IMAGES)/images.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC  $<")
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/obj/cuda_stems: FORCE
	@mkdir -p $(@D)
	@echo "$(CUDA_STEMS)" > $@.new && $(call update,$@)

# One object whose internal names are local, so that the static library too brings no name but attest_*.
$(STATIC): $(LIB_OBJ)
	$(if $(V),,@echo "  AR  $@")
	$(Q)$(LD) -r -o $(BUILD)/obj/attest.o $^ && $(OBJCOPY) --localize-hidden $(BUILD)/obj/attest.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(BUILD)/obj/attest.o

$(SHARED): $(LIB_OBJ) lib/attest.map
	$(if $(V),,@echo "  LD  $@")
	$(Q)$(CC) -shared -Wl,-soname,libattest.so.$(SOMAJOR) -Wl,--version-script=lib/attest.map -Wl,-z,defs $(CFLAGS) $(LDFLAGS) \
	    -o $@ $(LIB_OBJ) -fopenmp -lm -ldl
	$(Q)ln -sf $(@F) $(BUILD)/libattest.so.$(SOMAJOR) && ln -sf $(@F) $(BUILD)/libattest.so

# Tables of addresses are found at the start and read-only from then on: a kernel that runs in this program cannot change them.
RELRO := -Wl,-z,relro,-z,now
TOOL_LIBS := -Wl,-Bstatic -ljansson -lsodium -lsqlite3 -Wl,-Bdynamic -fopenmp -lm -ldl
# The workbench takes its third-party libraries statically, so that it can be copied to a machine that has none of them.
$(BUILD)/attest: $(call obj,$(TOOL_SRC)) $(STATIC)
	$(if $(V),,@echo "  LD  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(RELRO) -o $@ $^ $(TOOL_LIBS)

# Tests and benchmarks are programs as a user's would be, and use the shared library in the folder above; the static one with sanitizers of
# clang, which it links to programs alone, so that a shared library would lack them.
TEST_LIB := $(if $(and $(findstring -fsanitize,$(CFLAGS)),$(findstring clang,$(CC))),$(STATIC),$(SHARED))
TEST_LIBS = $(if $(filter $(SHARED),$^),-Wl$(comma)-rpath$(comma)'$$ORIGIN/..') -fopenmp -lm -ldl
TEST_COMMON := $(filter-out $(TEST_SRC) $(FUZZ_SRC),$(wildcard tests/*.c))
$(filter-out $(COUNTING),$(TESTS)) $(FUZZERS): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(call obj,$(TEST_COMMON)) $(TEST_LIB)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(BUILD)/bench/host_cost $(BUILD)/bench/turns: $(BUILD)/bench/%: $(BUILD)/obj/bench/%.o $(TEST_LIB)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

# Two tests count the library's calls of an allocator, and have it in them for that.
$(COUNTING): LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=posix_memalign
$(COUNTING): $(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(call obj,$(TEST_COMMON)) $(STATIC)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(TEST_LIBS)

$(BUILD)/obj/tests/fuzz_npy.o: ALL_CFLAGS += -Itool
# Tests of the workbench's own modules, with everything of the workbench but its main(): one program with all of them in it and as many
# names (hard links), by which it knows which one it is. The main() of test_x.c becomes test_x, and its other names are its own.
TOOL_TEST_NAMES := $(patsubst tests/tool/%.c,%,$(wildcard tests/tool/test_*.c))
TOOL_TESTS := $(TOOL_TEST_NAMES:%=$(BUILD)/tests/tool/%)
$(BUILD)/obj/tests/tool/%.o: ALL_CFLAGS += -Itool -Itests -I$(BUILD)/obj/tests/tool
$(BUILD)/obj/tests/tool/names.def: FORCE
	@mkdir -p $(@D)
	@printf 'NAME(%s)\n' $(TOOL_TEST_NAMES) > $@.new && $(call update,$@)
$(BUILD)/obj/tests/tool/by_name.o: $(BUILD)/obj/tests/tool/names.def
$(BUILD)/obj/tests/tool/%.renamed.o: $(BUILD)/obj/tests/tool/%.o
	$(Q)$(OBJCOPY) --redefine-sym main=$* --keep-global-symbol=$* $< $@
$(BUILD)/tests/tool/by_name: $(BUILD)/obj/tests/tool/by_name.o $(TOOL_TEST_NAMES:%=$(BUILD)/obj/tests/tool/%.renamed.o) \
    $(filter-out %/main.o,$(call obj,$(TOOL_SRC))) $(BUILD)/obj/tests/tap.o $(STATIC)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  LD  $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(RELRO) -o $@ $^ $(TOOL_LIBS)
$(TOOL_TESTS): $(BUILD)/tests/tool/by_name
	$(Q)ln -f $< $@
tool-tests: $(TOOL_TESTS)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ---- set-up, tests, proof, benchmarks ------------------------------------------------------------------------------------------
# Tools that look into CUDA images, where the toolkit came without them; behind those that are there.
CUDA_TOOLS := $(BUILD)/cuda-tools
WITH_TOOLS  = PATH="$$PATH:$(abspath $(CUDA_TOOLS))/bin"

# Those that take more than a quarter of a minute are begun first, the longest of all before the others, so that no processor waits for
# them at the end. Threads that wait for others sleep: with the default they turn in circles, on processors that another test wants.
LONGEST := $(patsubst %,tests/%.t,selftest sanitize aarch64 cuda_kernels cuda_build verify fuzz races speed evolve amx \
    exhaustive correctness determinism random new stages relations)
test:       ## install what is missing, build, and run the test suite (under 10 minutes on 2 cores, once built)
	@scripts/deps.sh build test
	@scripts/cuda_tools.sh $(CUDA_TOOLS)
	@$(MAKE) --no-print-directory -j$(JOBS) all tests tool-tests
	@rm -rf $(BUILD)/tap
	@$(WITH_TOOLS) BUILD=$(BUILD) CC="$(CC)" OMP_WAIT_POLICY=passive prove --timer --comments --jobs $(JOBS) --exec tests/recorded.sh $(PROVE_FLAGS) \
	    $(LONGEST) $(filter-out $(LONGEST),$(sort $(wildcard tests/*.t))) || { BUILD=$(BUILD) tests/recorded.sh --failed; exit 1; }

test-long:  ## the same tests with the long variants: bigger shapes, more random draws, longer fuzzing
	@ATTEST_TEST_LONG=1 $(MAKE) --no-print-directory test

prove:      ## install what is missing, build, prove every kernel this machine can run, write the report (under 10 minutes on 2 cores)
	@scripts/deps.sh build prove
	@scripts/cuda_tools.sh $(CUDA_TOOLS)
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(WITH_TOOLS) $(BUILD)/attest prove '*' --state $(BUILD)/proofs; status=$$?; \
	    $(BUILD)/attest report --state $(BUILD)/proofs --out $(BUILD)/report.html && exit $$status

bench-peers: ## install the peers, time them and attest interleaved, print the table, write bench/results JSON
	@scripts/deps.sh build bench
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@BUILD=$(BUILD) bench/peers.sh

# ---- install ----------------------------------------------------------------------------------------------------------------
install: all  ## copy program, libraries, header, pkg-config file and man pages to $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include/attest $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	    $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man3
	install -m755 $(BUILD)/attest $(DESTDIR)$(PREFIX)/bin/attest
	install -m644 include/attest.h include/attest_kernel.h include/attest_kernel_cuda.h $(DESTDIR)$(PREFIX)/include/
	install -m644 include/attest/*.cuh include/attest/flags.def $(DESTDIR)$(PREFIX)/include/attest/
	install -m644 $(STATIC) $(DESTDIR)$(PREFIX)/lib/libattest.a
	install -m755 $(SHARED) $(DESTDIR)$(PREFIX)/lib/$(notdir $(SHARED))
	ln -sf $(notdir $(SHARED)) $(DESTDIR)$(PREFIX)/lib/libattest.so.$(SOMAJOR)
	ln -sf libattest.so.$(SOMAJOR) $(DESTDIR)$(PREFIX)/lib/libattest.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' lib/attest.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/attest.pc
	install -m644 docs/attest.1 $(DESTDIR)$(PREFIX)/share/man/man1/attest.1
	install -m644 docs/attest.3 $(DESTDIR)$(PREFIX)/share/man/man3/attest.3

uninstall:  ## remove what install put there
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/attest include/attest.h include/attest_kernel.h include/attest_kernel_cuda.h $(wildcard include/attest/*.cuh include/attest/*.def) lib/libattest.a lib/libattest.so lib/libattest.so.$(SOMAJOR) \
	    lib/$(notdir $(SHARED)) lib/pkgconfig/attest.pc share/man/man1/attest.1 share/man/man3/attest.3)
	@rmdir $(DESTDIR)$(PREFIX)/include/attest 2> /dev/null || true

# ---- housekeeping -----------------------------------------------------------------------------------------------------------
FORMATTED = $(shell git ls-files '*.c' '*.h' 2>/dev/null)
format:     ## let clang-format lay out the sources
	$(if $(V),,@echo "  FMT $(words $(FORMATTED)) files")
	$(Q)clang-format -i $(FORMATTED)
check-format: ## say where clang-format would lay them out otherwise
	$(if $(V),,@echo "  FMT $(words $(FORMATTED)) files, only looked at")
	$(Q)clang-format --dry-run -Werror $(FORMATTED)
clean:      ## remove $(BUILD)
	rm -rf $(BUILD)
help:       ## this list
	@sed -n 's/^\([a-z-]*\):.*##\(.*\)/\1|\2/p' Makefile | awk -F'|' '{printf "  make %-13s%s\n", $$1, $$2}'
