# What the benchmark commands share. Sourced by them; needs `build`, `fresh` and `name`.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
mock_pid=
mock_on=()    # words before the mock and the client, such as taskset -c 0
client_on=()
spinner_pid=

die() {
  printf '%s: %s\n' "$name" "$*" >&2
  exit 1
}

stop_mock() {
  [ -n "$mock_pid" ] || return 0
  kill "$mock_pid" 2>/dev/null || true
  wait "$mock_pid" 2>/dev/null || true
  mock_pid=
}

# Splits the cores: the mock on the first, the client on the second.
pin_apart() {
  [ "$(nproc)" -ge 2 ] || die "--busy: needs two cores, one for the mock"
  command -v taskset >/dev/null || die "--busy: needs taskset (apt-get install util-linux)"
  mock_on=(taskset -c 0) client_on=(taskset -c 1)
}

# A process that never rests on the client's core; it and the client share that core half and half.
start_spinner() {
  taskset -c 1 bash -c 'while :; do :; done' &
  spinner_pid=$!
}

stop_spinner() {
  [ -n "$spinner_pid" ] || return 0
  kill "$spinner_pid" 2>/dev/null || true
  wait "$spinner_pid" 2>/dev/null || true
  spinner_pid=
}

clean_up() {
  stop_spinner
  stop_mock
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

bench_programs=(tutti-mock tutti-bench-raw tutti-bench-curl tutti-bench-engine)

# Unless --no-build said to take the programs as they are.
build_programs() {
  cd "$root"
  if [ "$fresh" = 0 ]; then
    local program
    for program in "${bench_programs[@]}"; do
      [ -x "$build/bin/$program" ] || die "--no-build: $build/bin/$program is not there"
    done
    return
  fi
  if [ ! -f "$build/build.ninja" ]; then
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTUTTI_TESTS=OFF -DTUTTI_BENCH=ON \
      >"$scratch/configure" 2>&1 || { cat "$scratch/configure"; die "cmake failed"; }
  fi
  cmake --build "$build" --target "${bench_programs[@]}" -- --quiet ||
    die "the build failed; benchmarks need libbenchmark-dev beside deploy/packages.txt"
}

# A mock on a free port, with these options; sets `url` and `mock_pid`.
start_mock() {
  stop_mock
  rm -f "$scratch/url"
  "${mock_on[@]}" "$build/bin/tutti-mock" --port 0 --port-file "$scratch/url" "$@" >"$scratch/mock" 2>&1 &
  mock_pid=$!
  local tries
  for tries in $(seq 100); do
    [ -s "$scratch/url" ] && break
    kill -0 "$mock_pid" 2>/dev/null || { cat "$scratch/mock" >&2; die "tutti-mock did not start"; }
    sleep 0.1
  done
  [ -s "$scratch/url" ] || die "tutti-mock opened no port in 10 s"
  url=$(head -n1 "$scratch/url")
}

# field LINE NAME [INNER]: a number of a flat JSON line, or of one of its objects.
field() {
  if [ $# -eq 3 ]; then
    sed -n "s/.*\"$2\":{[^}]*\"$3\":\\([-0-9.e+]*\\).*/\\1/p" <<<"$1"
  else
    sed -n "s/.*[{,]\"$2\":\\([-0-9.e+]*\\).*/\\1/p" <<<"$1"
  fi
}

# Numbers on stdin, one a line; the middle one, or of an even count the lower of the two.
median() { sort -g | awk '{v[NR]=$1} END {if (NR) print v[int((NR+1)/2)]}'; }

divide() { awk -v a="$1" -v b="$2" 'BEGIN {if (b+0 == 0) print "nan"; else printf "%.4g\n", a/b}'; }

circumstances() {
  local curl
  curl=$(dpkg-query -W -f '${Version}' libcurl4 2>/dev/null) || curl=unknown
  printf '%s cores; %s; kernel %s; libcurl %s; load average now %s\n' "$(nproc)" \
    "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n1)" "$(uname -r)" "$curl" \
    "$(cut -d' ' -f1-3 /proc/loadavg)"
}
