#!/usr/bin/env bash
# What a memory hit costs: Tidegate beside HAProxy's cache and nginx's. See README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export PATH="$PATH:/usr/sbin:/sbin"

runs=${RUNS:-5}
seconds=${SECONDS_EACH:-3}
connections=${CONNECTIONS:-64}
servers=(${SERVERS:-tidegate haproxy nginx})
objects=(140 16384)
tidegate=${TIDEGATE:-${CARGO_TARGET_DIR:-$root/target}/release/tidegate}

for program in haproxy nginx wrk taskset curl; do
    command -v "$program" >/dev/null || { echo "missing: $program" >&2; exit 1; }
done
[ -x "$tidegate" ] || { echo "missing: $tidegate (cargo build --release, or set TIDEGATE)" >&2; exit 1; }
[ "$(nproc)" -ge 2 ] || { echo "two cores are needed: one for the server, one for the load" >&2; exit 1; }

dir=$(mktemp -d)
tmpfs=$(mktemp -d -p /dev/shm)
started=()
stop() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -9 "$pid" 2>/dev/null || true
    done
    rm -rf "$dir" "$tmpfs"
}
trap stop EXIT

# A port that nobody listens on now.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 20000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

# A configuration of this folder with its places filled in.
configure() { # file port
    sed -e "s|@DIR@|$dir|g; s|@TMPFS@|$tmpfs|g; s|@PORT@|$2|g; s|@ORIGIN@|$origin_port|g" \
        "$here/$1" >"$dir/$1"
}

wait_port() {
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.05
    done
    echo "nothing listens on $1" >&2
    exit 1
}

wait_pid_file() {
    for _ in $(seq 100); do [ -s "$1" ] && { cat "$1"; return; }; sleep 0.05; done
    echo "no $1" >&2
    exit 1
}

declare -A port pid
origin_port=$(free_port)
admin_port=$(free_port)

mkdir -p "$dir/site"
chmod 755 "$dir" "$tmpfs"
for size in "${objects[@]}"; do head -c "$size" /dev/zero | tr '\0' 'x' >"$dir/site/$size.html"; done
configure origin.conf 0
nginx -p "$dir" -c "$dir/origin.conf" 2>/dev/null
started+=("$(wait_pid_file "$dir/origin.pid")")
wait_port "$origin_port"

for server in "${servers[@]}"; do
    port[$server]=$(free_port)
    case $server in
    tidegate)
        # The demo's rules, all of them, in one worker.
        printf 'global\n    nbthread 1\n' | cat - "$root/rules/demo.cfg" |
            sed -e "s|127.0.0.1:8080$|127.0.0.1:${port[$server]}|; s|127.0.0.1:9180$|127.0.0.1:$admin_port|" \
                >"$dir/tidegate.cfg"
        TIDEGATE_DEMO_ORIGIN=127.0.0.1:$origin_port \
            taskset -c 0 "$tidegate" run -f "$dir/tidegate.cfg" 2>"$dir/tidegate.log" &
        pid[$server]=$!
        ;;
    haproxy)
        configure haproxy.cfg "${port[$server]}"
        taskset -c 0 haproxy -f "$dir/haproxy.cfg" 2>"$dir/haproxy.log"
        pid[$server]=$(wait_pid_file "$dir/haproxy.pid")
        ;;
    nginx)
        configure nginx.conf "${port[$server]}"
        taskset -c 0 nginx -p "$dir" -c "$dir/nginx.conf" 2>/dev/null
        pid[$server]=$(wait_pid_file "$dir/nginx.pid")
        ;;
    esac
    started+=("${pid[$server]}")
    wait_port "${port[$server]}"
done

# The process and its children.
family() { echo "$1"; ps -o pid= --ppid "$1" || true; }

# User and system time of a server's processes, all threads, in clock ticks.
ticks() {
    local sum=0 member user system
    for member in $(family "$1"); do
        read -r user system < <(sed 's/^.*) //' "/proc/$member/stat" | cut -d' ' -f12,13)
        sum=$((sum + user + system))
    done
    echo "$sum"
}

hertz=$(getconf CLK_TCK)

# One run: CPU microseconds per request, requests per second, p99.
measure() { # server object
    local url="http://127.0.0.1:${port[$1]}/$2.html" before after output requests rate p99
    curl -sf -o /dev/null "$url"
    curl -sf -o /dev/null "$url"
    before=$(ticks "${pid[$1]}")
    output=$(taskset -c 1 wrk -t1 -c"$connections" -d"${seconds}s" --latency "$url")
    after=$(ticks "${pid[$1]}")
    if grep -Eq 'Non-2xx|Socket errors: .*(connect|read|write) [1-9]' <<<"$output"; then
        echo "$output" >&2
        exit 1
    fi
    requests=$(awk '/requests in/ { print $1 }' <<<"$output")
    rate=$(awk '/Requests\/sec/ { print $2 }' <<<"$output")
    p99=$(awk '$1 == "99%" { print $2 }' <<<"$output")
    awk -v t="$((after - before))" -v hz="$hertz" -v n="$requests" -v r="$rate" -v p="$p99" \
        'BEGIN { printf "%.2f %.0f %s\n", t / hz * 1e6 / n, r, p }'
}

for object in "${objects[@]}"; do
    for server in "${servers[@]}"; do measure "$server" "$object" >/dev/null; done # warm
    for run in $(seq "$runs"); do
        for server in "${servers[@]}"; do
            result=$(measure "$server" "$object")
            echo "$result" >>"$dir/$server.$object"
            echo "$object B, run $run, $server: $result" >&2
        done
    done
done

median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

slower=0
printf '\n%-8s %-10s %14s %12s %18s\n' object server 'cpu µs/request' requests/s 'cpu of tidegate ÷'
for object in "${objects[@]}"; do
    own=$(cut -d' ' -f1 "$dir/tidegate.$object" 2>/dev/null | median || true)
    for server in "${servers[@]}"; do
        cpu=$(cut -d' ' -f1 "$dir/$server.$object" | median)
        rate=$(cut -d' ' -f2 "$dir/$server.$object" | median)
        ratio=$(awk -v a="${own:-0}" -v b="$cpu" 'BEGIN { if (a > 0 && b > 0) printf "%.2f", a / b; else print "-" }')
        printf '%-8s %-10s %14s %12s %18s\n' "$object" "$server" "$cpu" "$rate" "$ratio"
        if [ "$server" = haproxy ] && awk -v r="$ratio" 'BEGIN { exit !(r != "-" && r >= 1) }'; then slower=1; fi
    done
done
[ "$slower" = 0 ] || { echo "a hit costs more than HAProxy's" >&2; exit 1; }
