# What the benchmarks over network namespaces share: sourced after common.sh. Needs root.

netns_bin=$build/bin netns_dir=$scratch
# shellcheck source=tests/support/netns/hosts.sh
source "$root/tests/support/netns/hosts.sh"

end_netns() {
  netns_down
  clean_up
}
trap end_netns EXIT

need_netns() {
  local why
  why=$(netns_cannot)
  [ -z "$why" ] || die "$why"
}

build_netns_programs() {
  local program programs="tutti tutti-agent tutti-mock tutti-delay-line"
  cd "$root"
  if [ "$fresh" = 1 ]; then
    [ -f "$build/build.ninja" ] ||
      cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTUTTI_TESTS=OFF -DTUTTI_BENCH=ON \
        >"$scratch/configure" 2>&1 || { cat "$scratch/configure"; die "cmake failed"; }
    # shellcheck disable=SC2086
    cmake --build "$build" --target $programs -- --quiet || die "the build failed"
  fi
  for program in $programs; do
    [ -x "$build/bin/$program" ] || die "$build/bin/$program is not there"
  done
}

# netns_mock NAME PORT FLAGS… on host `mock`; ready when it returns.
netns_mock() {
  local label=$1 port=$2
  shift 2
  start_on mock "$scratch/mock.$label" "$build/bin/tutti-mock" --host 10.79.0.1 --port "$port" "$@"
  netns_wait 20 "mock $label" grep -qs listening "$scratch/mock.$label" || die "no mock"
}

# netns_agent HOST ADDRESS FLAGS…: its CPU time, of the whole process, ends up in $scratch/cpu.HOST (as `times` tells it).
agents=()
netns_agent() {
  local host=$1 address=$2
  shift 2
  # shellcheck disable=SC2016
  start_on "$host" "$scratch/cpu.$host" bash -c \
    '"$@" >"$0" 2>&1 & pid=$!; trap "kill $pid" TERM; wait $pid; times' "$scratch/agent.$host" "$build/bin/tutti-agent" --connect "tcp://$address:7777" --insecure \
    --name "$host" --spool-dir "$scratch/spool.$host" --cache-dir "$scratch/cache.$host" "$@"
  agents+=("$netns_started")
}

# netns_conduct FOLDER, config on stdin: the run from `centre`; waits until all agents have left.
netns_conduct() {
  local pid code=0
  cat >"$scratch/config.yaml"
  rm -rf "$1"
  timeout 120 nsenter --target "${netns_host[centre]}" --net --uts -- \
    "$build/bin/tutti" benchmark from-config -c "$scratch/config.yaml" --report-dir "$1" \
    </dev/null >"$scratch/run.out" 2>&1 || code=$?
  [ "$code" = 0 ] || { tail -n 30 "$scratch/run.out" >&2; die "the run ended with $code"; }
  for pid in "${agents[@]}"; do
    netns_wait 20 "an agent's end" test ! -d "/proc/$pid" || die "an agent stayed"
  done
  agents=()
}
