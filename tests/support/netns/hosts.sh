# Hosts in network namespaces of this machine, for tests and benchmarks; sourced. Needs root, iproute2 and
# util-linux, and sets `netns_bin` (folder of the programs) and `netns_dir` (a folder for its state) before.
#
#   netns_cannot            prints why it cannot work here, or nothing
#   host_up NAME            a host: network namespace of its own, loopback up
#   on NAME CMD…            runs a command there
#   start_on NAME OUT CMD…  the same in the background, output to the file OUT; `netns_started` is its pid, and
#                           netns_down ends it
#   switch_up HOST HOST…    cables without delay between HOST (10.79.0.1) and the others (10.79.0.2, …), in order
#   line_up CENTRE HOST N THERE JITTER BACK JITTER
#                           a delayed cable, µs: CENTRE is 10.78.N.1, HOST is 10.78.N.2
#   netns_down              ends all of it
#
# The delay is made by netem where the kernel has it, else by tutti-delay-line; `netns_delay_by` says which.
# netem lets packets overtake each other, the line does not. Nothing here outlives netns_life seconds.

netns_life=${netns_life:-900}
netns_delay_by=
netns_started=
netns_pids=()
declare -A netns_host=()

netns_cannot() {
  local program
  [ "$(id -u)" = 0 ] || { echo "needs root for namespaces"; return; }
  for program in ip tc nsenter unshare python3; do
    command -v "$program" >/dev/null || { echo "$program is not installed (deploy/packages-test.txt)"; return; }
  done
  unshare --net --uts true 2>/dev/null || { echo "namespaces may not be made here"; return; }
  if unshare --net sh -c 'ip link set lo up && tc qdisc add dev lo root netem delay 1ms' 2>/dev/null; then
    return
  fi
  unshare --net ip tuntap add probe mode tun 2>/dev/null ||
    echo "the kernel has neither the netem qdisc nor tun devices"
}

# netem or line; once, when the first cable is laid.
netns_choose() {
  [ -z "$netns_delay_by" ] || return 0
  netns_delay_by=line
  if unshare --net sh -c 'ip link set lo up && tc qdisc add dev lo root netem delay 1ms' 2>/dev/null; then
    netns_delay_by=netem
  fi
}

host_up() { # NAME
  unshare --net --uts sh -c "hostname $1; ip link set lo up; echo up >$netns_dir/up.$1; exec sleep $netns_life" \
    </dev/null >/dev/null 2>&1 &
  netns_host[$1]=$!
  netns_pids+=($!)
  netns_wait 10 "host $1" test -s "$netns_dir/up.$1"
}

on() { # NAME CMD…
  local pid=${netns_host[$1]}
  shift
  nsenter --target "$pid" --net --uts -- "$@"
}

# Not `on … &`: that pid would be a shell's, and ending it would leave the command behind.
start_on() { # NAME OUT CMD…
  local pid=${netns_host[$1]} out=$2
  shift 2
  nsenter --target "$pid" --net --uts -- "$@" </dev/null >"$out" 2>&1 &
  netns_started=$!
  netns_pids+=("$netns_started")
}

netns_wait() { # SECONDS WHAT CONDITION…
  local i seconds=$1 what=$2
  shift 2
  for ((i = 0; i < seconds * 20; i++)); do
    if "$@"; then return 0; fi
    sleep 0.05
  done
  echo "$what: not within $seconds s" >&2
  return 1
}

switch_up() { # HOST HOST…
  local centre=$1 host n=2
  shift
  on "$centre" sh -ec "ip link add bridge0 type bridge; ip addr add 10.79.0.1/24 dev bridge0; ip link set bridge0 up"
  for host in "$@"; do
    on "$centre" sh -ec "ip link add to$host type veth peer name eth0 netns ${netns_host[$host]}
      ip link set to$host master bridge0 up"
    on "$host" sh -ec "ip addr add 10.79.0.$n/24 dev eth0; ip link set eth0 up"
    n=$((n + 1))
  done
}

line_up() { # CENTRE HOST N THERE JITTER BACK JITTER
  local centre=${netns_host[$1]} host=${netns_host[$2]} near=line$3 far=line0
  netns_choose
  if [ "$netns_delay_by" = netem ]; then
    on "$1" ip link add "$near" type veth peer name "$far" netns "$host"
    on "$1" tc qdisc add dev "$near" root netem delay "${4}us" "${5}us"
    on "$2" tc qdisc add dev "$far" root netem delay "${6}us" "${7}us"
  else
    on "$1" ip tuntap add "$near" mode tun
    on "$2" ip tuntap add "$far" mode tun
    "$netns_bin/tutti-delay-line" "$centre" "$near" "$host" "$far" "$4" "$5" "$6" "$7" "$netns_life" \
      </dev/null >"$netns_dir/$near" 2>&1 &
    netns_pids+=($!)
    netns_wait 10 "delay line $3" grep -qs ready "$netns_dir/$near" || { cat "$netns_dir/$near" >&2; return 1; }
  fi
  on "$1" sh -ec "ip addr add 10.78.$3.1/24 dev $near; ip link set $near up"
  on "$2" sh -ec "ip addr add 10.78.$3.2/24 dev $far; ip link set $far up"
}

netns_down() {
  [ ${#netns_pids[@]} -eq 0 ] || kill "${netns_pids[@]}" 2>/dev/null || true
  [ ${#netns_pids[@]} -eq 0 ] || wait "${netns_pids[@]}" 2>/dev/null || true
  netns_pids=()
}
