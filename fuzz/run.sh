#!/bin/sh
# Runs each fuzz target for so many seconds, from its corpus in this folder: run.sh SECONDS [TARGET...]
#
# With the same dice each time, so that a test says the same twice; FUZZ_SEED=0 throws others.
#
# The stable compiler can put in libFuzzer's counters; what needs a nightly one is only the address sanitizer. Comparisons are not
# traced: the search for near names that an unknown keyword starts would take nine tenths of the time. Words come from a dictionary.
set -eu
cd "$(dirname "$0")"
seconds=$1
shift
[ $# -gt 0 ] || set -- ceb config_parser connection decode_body decode_br decode_deflate decode_gzip decode_zstd deflate dictionary_fields engine_protocol expressions h1_codec h2_connection \
    h2_hpack proxy_protocol records unpack verify zlib_api zlib_inflate
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table" \
    cargo build --quiet --release --target "$host"
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
mkdir -p artifacts
for target in "$@"; do
    mkdir "$found/$target"
    # What is new goes into the first folder, which is thrown away; the corpus is only read.
    if "${CARGO_TARGET_DIR:-target}/$host/release/$target" "$found/$target" "corpus/$target" -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -timeout=10 \
        -max_len=4096 -dict="targets/$target.dict" -rss_limit_mb=2048 -artifact_prefix="artifacts/$target-" >"$found/log" 2>&1; then
        echo "fuzz: $target: $(tail -n 1 "$found/log")"
    else
        tail -n 40 "$found/log"
        echo "fuzz: $target failed; its input is in fuzz/artifacts"
        exit 1
    fi
done
