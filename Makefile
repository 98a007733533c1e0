# One command for every check, the same here and in CI.

.PHONY: test check bench install-tools clean

# Everything: formatting, lints, documentation, tests on whatever this machine has.
test: install-tools check
	cargo test --workspace --no-fail-fast

check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# vmtax against plain C, and the main job against its budget. Takes some two minutes; run it on a quiet machine.
bench:
	cargo bench -p vmtax-machine --bench against_c
	cargo bench -p vmtax --bench matrix

# What the tests need beside a Rust toolchain: a C compiler, QEMU, two benchmarks and the tools below. Installed where that is
# possible without asking, else named.
TOOLS := cc:gcc unshare:util-linux setpriv:util-linux qemu-system-x86_64:qemu-system-x86 sysbench:sysbench hackbench:rt-tests \
	mmdebstrap:mmdebstrap mksquashfs:squashfs-tools
install-tools:
	@missing=""; \
	for tool in $(TOOLS); do command -v $${tool%%:*} >/dev/null 2>&1 || missing="$$missing $${tool##*:}"; done; \
	rustfmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
		{ echo "missing: rustup component add rustfmt clippy"; exit 1; }; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		apt-get update -q && apt-get install -qy --no-install-recommends $$missing; \
	else echo "missing packages:$$missing"; exit 1; fi

clean:
	cargo clean
