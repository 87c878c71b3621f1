# Links the drivers against Valkey's own objects, with Valkey's own flags: run in its src directory, by scripts/valkey-driver.
# DRIVERS is this directory, OUT is where the programs go.

include Makefile

# What the Makefile links valkey-server from.
WEFT_LIBS = ../deps/libvalkey/lib/libvalkey.a ../deps/hdr_histogram/libhdrhistogram.a ../deps/fpconv/libfpconv.a \
	$(FINAL_LIBS) $(LUA_LDFLAGS)
# Valkey's main is weak: the driver's takes its place.
WEFT_SOURCES = $(DRIVERS)/driver.c $(DRIVERS)/valkey.c
WEFT_WRAP = $(foreach name,malloc calloc realloc free sdallocx,-Wl,--wrap=je_$(name))

.PHONY: weft-drivers
weft-drivers: $(OUT)/valkey-driver $(OUT)/valkey-driver-counting

$(OUT)/valkey-driver: $(WEFT_SOURCES) $(DRIVERS)/no_count.c $(DRIVERS)/driver.h
	$(CC) $(FINAL_CFLAGS) -I. -I$(DRIVERS) $(FINAL_LDFLAGS) -o $@ $(WEFT_SOURCES) $(DRIVERS)/no_count.c \
		$(ENGINE_SERVER_OBJ) $(WEFT_LIBS)

# Without link-time optimisation, which sees through --wrap; the objects hold machine code as well.
$(OUT)/valkey-driver-counting: $(WEFT_SOURCES) $(DRIVERS)/count_malloc.c $(DRIVERS)/driver.h
	$(CC) $(FINAL_CFLAGS) -fno-lto -I. -I$(DRIVERS) $(FINAL_LDFLAGS) -fno-lto $(WEFT_WRAP) -o $@ $(WEFT_SOURCES) \
		$(DRIVERS)/count_malloc.c $(ENGINE_SERVER_OBJ) $(WEFT_LIBS)
