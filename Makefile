# limber: build, test, install. `make help` lists the targets.
#
# Variables: CC, CFLAGS (added), OPTIMISE, BUILD (folder for everything that is made), PREFIX, DESTDIR, ARCH, V=1 (show
# commands and the output of tests).
# ARCH is the oldest x86-64 level that the binaries must run on (gcc's -march). Its default is the baseline that every
# x86-64 machine has; the hot kernels are compiled three times and chosen at run time, so ARCH=native gains little.

ifeq ($(origin CC),default) # nobody chose: whichever is there
CC      := $(firstword $(foreach c,cc gcc clang,$(if $(shell command -v $(c) 2>/dev/null),$(c))) cc)
endif
BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
VERSION := 0.1.0
SOVERSION := 0

MACHINE := $(shell uname -m)
ifeq ($(MACHINE),x86_64)
ARCH ?= x86-64
SIMD_LEVELS := baseline avx2 avx512
endif
SIMD_LEVELS ?= baseline
SIMD_FLAGS_baseline :=
SIMD_FLAGS_avx2     := -mavx2 -mfma
SIMD_FLAGS_avx512   := -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma -mprefer-vector-width=512

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror=implicit-function-declaration
OPTIMISE ?= -O3 -g
CFLAGS   ?=
ALL_CFLAGS = -std=c17 $(OPTIMISE) -fno-math-errno -ffp-contract=off $(WARNINGS) $(if $(ARCH),-march=$(ARCH)) -fPIC -pthread -D_GNU_SOURCE \
             -DLIMBER_VERSION='"$(VERSION)"' -I. $(SANITIZE) $(CFLAGS)
LIBS := -lopenblas -llapacke -lcholmod -larpack -lmetis -lcjson -lz -lpng -lxxhash -lpthread -lm

LIBRARIES := libfem libdomain libmodes libcubature libsolver libscene
KERNELS   := $(foreach l,$(LIBRARIES),$(wildcard $(l)/kernel_*.c))
SOURCES   := $(filter-out $(KERNELS),$(foreach l,$(LIBRARIES),$(wildcard $(l)/*.c)))
OBJECTS   := $(SOURCES:%.c=$(BUILD)/%.o) $(foreach s,$(SIMD_LEVELS),$(KERNELS:%.c=$(BUILD)/%.$(s).o))
APP       := $(patsubst %.c,$(BUILD)/%.o,$(wildcard app/*.c))
TESTS     := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))
BENCHES   := $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c))
HEADERS   := $(foreach l,$(LIBRARIES),$(wildcard $(l)/*.h))

# As many jobs as there are cores, unless the caller chose (-j1, -j8) or gave several goals, which run one by one.
# TOGETHER keeps the output of each compilation in one piece; tests and runs shall show theirs as it comes.
TOGETHER := --output-sync=target
ifeq ($(MAKELEVEL)$(word 2,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 1) $(if $(filter demo test test-long asan fuzz bench bench-long,$(MAKECMDGOALS)),,$(TOGETHER))
endif

# Q hides a command unless V=1; SAY prints the short form instead.
Q   := $(if $(V),,@)
SAY := @$(if $(V),:,printf '  %-5s %s\n')

.DEFAULT_GOAL := all
.PHONY: all
all: $(BUILD)/limber $(BUILD)/liblimber.a $(BUILD)/liblimber.so

# A file that changes when the compiler or its flags do, and one that changes when a source file comes or goes.
FLAGS_FILE   := $(BUILD)/flags
OBJECTS_FILE := $(BUILD)/objects
define remember # $(1) file, $(2) text
$(shell mkdir -p $(BUILD); printf '%s\n' $(2) | cmp -s - $(1) || printf '%s\n' $(2) > $(1))
endef
quoted = '$(subst ','\'',$(1))'
ifneq ($(filter-out clean help format check-format check-includes install-files uninstall,$(or $(MAKECMDGOALS),all)),)
$(call remember,$(FLAGS_FILE),$(call quoted,$(CC) $(shell $(CC) -dumpversion 2>/dev/null) $(ALL_CFLAGS) $(LIBS)))
$(call remember,$(OBJECTS_FILE),$(call quoted,$(OBJECTS) $(APP)))
endif

$(BUILD)/%.o: %.c $(FLAGS_FILE)
	@mkdir -p $(@D)
	$(SAY) CC $<
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# wide vectors as arguments stay within a file; loops that clang does not unroll are only slower
KERNEL_WARNINGS := -Wno-psabi -Wno-pass-failed
KERNEL_CFLAGS = $(if $(PLAIN_KERNELS),$(filter-out $(SANITIZE),$(ALL_CFLAGS)),$(ALL_CFLAGS))
define kernel_rule
$(BUILD)/%.$(1).o: %.c $(FLAGS_FILE)
	@mkdir -p $$(@D)
	$(SAY) CC '$$< ($(1))'
	$(Q)$$(CC) $$(KERNEL_CFLAGS) $$(SIMD_FLAGS_$(1)) -ffp-contract=fast $(KERNEL_WARNINGS) -DSIMD_SUFFIX=_$(1) -MMD -MP -c $$< -o $$@
endef
$(foreach s,$(SIMD_LEVELS),$(eval $(call kernel_rule,$(s))))

$(BUILD)/liblimber.a: $(OBJECTS) $(OBJECTS_FILE)
	$(SAY) AR $@
	$(Q)rm -f $@ && ar rcs $@ $(OBJECTS)

$(BUILD)/liblimber.so: $(OBJECTS) $(OBJECTS_FILE)
	$(SAY) LINK $@
	$(Q)$(CC) $(SANITIZE) -shared -Wl,-soname,liblimber.so.$(SOVERSION) -o $@ $(OBJECTS) $(LIBS)

$(BUILD)/limber: $(APP) $(BUILD)/liblimber.a $(OBJECTS_FILE)
	$(SAY) LINK $@
	$(Q)$(CC) $(SANITIZE) -o $@ $(APP) $(BUILD)/liblimber.a $(LIBS)

$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/tests/support.o $(BUILD)/liblimber.a
	$(SAY) LINK $@
	$(Q)$(CC) $(SANITIZE) -o $@ $^ $(LIBS) -lcmocka

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(BUILD)/bench/plot.o $(BUILD)/liblimber.a
	$(SAY) LINK $@
	$(Q)$(CC) $(SANITIZE) -o $@ $^ $(LIBS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PRECIOUS: $(BUILD)/%.o

# ---- demo, tests, benchmarks ---------------------------------------------------------------------------------------
# They install what is missing before anything is compiled, so the compilation is a second make.

.PHONY: demo test test-long asan bench bench-long build-tests build-benches
prepare = @CC='$(CC)' scripts/install-deps && $(MAKE) --no-print-directory $(TOGETHER)

# Few modes and coarse branches: a small oak for a first look. bench_oak has the one of the papers.
DEMO_OAK := --seed 4 --branch-modes 8 --leaf-modes 4 --segments 24 --leaf-scale 1.5 --wind 8 --seconds 4
DEMO_VIEW := --at 3 --size 720x540 --zoom 1.3 --elevation 4 --sun-azimuth -15 --sun-elevation 48
demo:
	+$(prepare) $(BUILD)/limber
	@mkdir -p out
	$(BUILD)/limber grow oak -o out/oak.json $(DEMO_OAK)
	$(BUILD)/limber run out/oak.json -o out/oak
	$(BUILD)/limber render out/oak/oak.glb -o out/oak/oak.png $(DEMO_VIEW)
	@echo
	@echo "An oak of 41 branches and 1,394 leaves in the wind:"
	@echo "    out/oak.json      its scene, to be edited and run again"
	@echo "    out/oak/oak.png   a picture of it after three seconds"
	@echo "    out/oak/oak.glb   its motion, for Blender and others; limber render makes pictures and films of it"

SCRIPT_TESTS := scripts/check-includes scripts/test-scripts scripts/test-readme scripts/test-example
SCRIPT_TESTS += $(if $(LIMBER_LONG),scripts/test-mesh-programs) # files of gmsh, tetgen and ccx
SCRIPT_TESTS += $(if $(LIMBER_LONG),scripts/test-glb-programs) # the Khronos validator, Blender
build-tests: all $(TESTS)
test:
	+$(prepare) build-tests
	@LIMBER_PROGRAM='$(abspath $(BUILD)/limber)' LIMBER_BUILD='$(abspath $(BUILD))' LIMBER_CC='$(CC)' \
	LIMBER_SANITIZE='$(SANITIZE)' V='$(V)' scripts/run-tests $(BUILD)/test-logs $(TESTS) $(SCRIPT_TESTS)
test-long:
	@+LIMBER_LONG=1 LIMBER_TEST_TIMEOUT=$${LIMBER_TEST_TIMEOUT:-14400} $(MAKE) --no-print-directory test

# The whole suite with the address and undefined-behaviour sanitizers, leaks included.
asan:
	@+$(MAKE) --no-print-directory BUILD=build-asan OPTIMISE='-O1 -g' \
	SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer' test

# Each reader with bytes that libFuzzer invents, for FUZZ_SECONDS of processor time; needs clang. The kernels, which read
# no file, are left plain: clang takes minutes for each of them with everything switched on.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= veg vegb node vtu vtk msh mesh meshb inp obj stl ply fill bou npy mtx veg.gz json store basis checkpoint glb skeleton
FUZZ_PROGRAMS := $(FUZZ_TARGETS:%=$(BUILD)/%)
$(FUZZ_PROGRAMS:$(BUILD)/%=$(BUILD)/fuzz-%.o): $(BUILD)/fuzz-%.o: tests/fuzz/fuzz.c $(FLAGS_FILE)
	$(SAY) CC '$< (.$*)'
	$(Q)$(CC) $(ALL_CFLAGS) -DFUZZ_ENDING='".$*"' -MMD -MP -c $< -o $@
.PHONY: fuzz build-fuzz
build-fuzz: $(FUZZ_PROGRAMS)
$(FUZZ_PROGRAMS): $(BUILD)/%: $(BUILD)/fuzz-%.o $(BUILD)/liblimber.a
	$(SAY) LINK $@
	$(Q)$(CC) $(SANITIZE) -fsanitize=fuzzer -o $@ $^ $(LIBS)
fuzz:
	@CC=clang scripts/install-deps clang llvm libclang-rt-dev
	@+$(MAKE) --no-print-directory BUILD=build-fuzz CC=clang OPTIMISE='-O1 -g' PLAIN_KERNELS=1 \
	SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fprofile-instr-generate -fcoverage-mapping' build-fuzz
	@scripts/fuzz build-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

build-benches: all $(BENCHES)
bench:
	+$(prepare) build-benches
	@mkdir -p out/bench
	@$(BUILD)/limber info --machine
	@for program in $(BENCHES); do echo; echo "== $$(basename $$program)"; $$program || exit 1; done
bench-long: # adds the rows that take long, or much memory
	@+LIMBER_LONG=1 $(MAKE) --no-print-directory bench

# ---- install -------------------------------------------------------------------------------------------------------

.PHONY: install install-files uninstall
INCLUDE := $(DESTDIR)$(PREFIX)/include/limber
LIB     := $(DESTDIR)$(PREFIX)/lib
BIN     := $(DESTDIR)$(PREFIX)/bin
MAN     := $(DESTDIR)$(PREFIX)/share/man/man1
# The public headers are those that limber.h brings in; only the compiler knows.
PUBLIC_HEADERS = $(filter-out limber.h.gch: limber.o:,$(subst \,,$(shell $(CC) -std=c17 -D_GNU_SOURCE -I. -MM limber.h)))
install: all
	@+$(MAKE) --no-print-directory install-files
install-files: # of a finished build
	@mkdir -p $(LIB)/pkgconfig $(BIN) $(MAN)
	@for h in $(PUBLIC_HEADERS); do install -D -m 644 $$h $(INCLUDE)/$$h || exit 1; done
	install -m 644 $(BUILD)/liblimber.a $(LIB)/liblimber.a
	install -m 755 $(BUILD)/liblimber.so $(LIB)/liblimber.so.$(VERSION)
	ln -sf liblimber.so.$(VERSION) $(LIB)/liblimber.so.$(SOVERSION)
	ln -sf liblimber.so.$(SOVERSION) $(LIB)/liblimber.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(LIBS)|' limber.pc.in > $(LIB)/pkgconfig/limber.pc
	install -m 755 $(BUILD)/limber $(BIN)/limber
	install -m 644 docs/limber.1 $(MAN)/limber.1
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig 2>/dev/null || true; fi

uninstall:
	rm -rf $(INCLUDE)
	rm -f $(LIB)/liblimber.a $(LIB)/liblimber.so $(LIB)/liblimber.so.* $(LIB)/pkgconfig/limber.pc $(BIN)/limber $(MAN)/limber.1

# ---- housekeeping --------------------------------------------------------------------------------------------------

.PHONY: clean format check-format check-includes help
FORMATTED := $(wildcard limber.h) $(foreach d,$(LIBRARIES) app tests tests/fuzz bench examples,$(wildcard $(d)/*.c $(d)/*.h $(d)/*.inc))
clean:
	rm -rf $(BUILD) build-asan out
format:
	clang-format -i $(FORMATTED)
check-format:
	@if command -v clang-format >/dev/null; then clang-format --dry-run --Werror $(FORMATTED); \
	else echo "check-format: clang-format is not installed, nothing was checked"; fi
check-includes:
	@scripts/check-includes

help:
	@echo "make                 the program build/limber and the library"
	@echo "make demo            a first simulation, from nothing: installs what is missing, builds, runs, draws"
	@echo "make test            all tests, likewise; V=1 shows their numbers; test-long adds the long ones"
	@echo "make asan            all tests with the address and undefined-behaviour sanitizers"
	@echo "make fuzz            every reader with invented bytes, FUZZ_SECONDS=$(FUZZ_SECONDS) each; prints the lines that were reached"
	@echo "make bench           all benchmarks, figures in out/bench; bench-long adds the long ones"
	@echo "make install         to PREFIX=$(PREFIX), below DESTDIR; make uninstall removes it"
	@echo "make check-includes  which file may include what"
	@echo "make format          clang-format on all sources; check-format only looks"
	@echo "make clean           removes everything that was made"
	@echo
	@echo "CC=clang chooses the compiler, ARCH=native the processor, BUILD=folder where things are made."
