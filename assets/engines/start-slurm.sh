#!/usr/bin/env bash
# Start or stop a Slurm cluster of one node on this machine, for trials and tests. Run as root:
#
#     apt-get install slurm-wlm                    # Debian and Ubuntu: slurmctld, slurmd, munge and the commands
#     assets/engines/start-slurm.sh FOLDER         # prints the setting that sbatch, squeue and scancel need
#     export SLURM_CONF=FOLDER/slurm.conf
#     assets/engines/start-slurm.sh --stop FOLDER
#
# Everything lies in FOLDER: configuration, key, sockets, state and logs. Nothing in /etc changes, and systemd is not
# needed, so that it works in a container. A real cluster has the same three parts: munge proves to each machine who
# submits a job, slurmctld keeps the queue, and slurmd starts the jobs on each node.
set -euo pipefail
export PATH="$PATH:/usr/sbin:/sbin"

# Print the number of a program's process, unless the process has ended and another program has this number now.
process_of() {
  local pid
  [ -s "$1/$2.pid" ] || return 0
  pid=$(cat "$1/$2.pid")
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$2" ] || echo "$pid"
}

stop() {
  local name pid
  # slurmd leaves the jobs running when it ends, so that an update loses none.
  if SLURM_CONF="$1/slurm.conf" timeout 10 scancel --partition=main 2>/dev/null; then
    for _ in $(seq 100); do
      [ -n "$(SLURM_CONF="$1/slurm.conf" timeout 10 squeue --noheader 2>/dev/null)" ] || break
      sleep 0.1
    done
  fi
  for name in slurmd slurmctld munged; do
    pid=$(process_of "$1" "$name")
    [ -n "$pid" ] || continue
    kill "$pid"
    for _ in $(seq 100); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
  done
}

fail() {
  echo "$1" >&2
  stop "$folder"
  exit 1
}

if [ "${1:-}" = --stop ]; then
  stop "$(realpath "$2")"
  exit
fi
if [ "$#" != 1 ]; then
  echo "Usage: $0 [--stop] FOLDER" >&2
  exit 2
fi
mkdir -p "$1"
folder=$(realpath "$1")
for name in munged slurmctld slurmd; do
  pid=$(process_of "$folder" "$name")
  [ -z "$pid" ] || {
    echo "A cluster runs in $folder: $name is process $pid. Choose another folder, or stop it: $0 --stop $folder" >&2
    exit 1
  }
done
for program in munged mungekey slurmctld slurmd squeue; do
  command -v "$program" >/dev/null || fail "$program is not installed. Install it: apt-get install slurm-wlm"
done
[ "$(id -u)" = 0 ] || fail "slurmd starts jobs for their users and must run as root. Start this script as root."

# munge refuses keys and sockets in folders that other users can write to. The socket's path must be short.
mkdir -p "$folder"/{munge,spool,state}
chmod 755 "$folder" "$folder/munge"
[ -f "$folder/munge/key" ] || mungekey --create --keyfile="$folder/munge/key"
chmod 400 "$folder/munge/key"
munged --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munged.pid" \
  --log-file="$folder/munged.log" --seed-file="$folder/munge/seed" || fail "munged did not start: $folder/munged.log"

# Every cluster on this machine has ports of its own, so that two can run side by side.
ports=($(python3 - <<'PYTHON'
import socket
sockets = [socket.socket() for _ in range(2)]
for item in sockets:
    item.bind(("127.0.0.1", 0))
print(*(item.getsockname()[1] for item in sockets))
PYTHON
))
node=$(hostname -s)
memory=$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo)
cat > "$folder/slurm.conf" <<CONF
ClusterName=one-node
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=10
CredType=cred/munge
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
# A container has no cgroups of its own, so that processes are tracked by their group, and memory is not limited.
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
ReturnToService=2
KillWait=5
JobRequeue=1
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$folder/slurm.conf"
slurmctld -f "$SLURM_CONF" || fail "slurmctld did not start: $folder/slurmctld.log"
slurmd -f "$SLURM_CONF" -N "$node" || fail "slurmd did not start: $folder/slurmd.log"
for _ in $(seq 100); do
  if [ "$(sinfo --noheader --format=%t 2>/dev/null)" = idle ]; then
    echo "export SLURM_CONF=$SLURM_CONF"
    exit
  fi
  sleep 0.1
done
fail "The node is not idle after 10 seconds: $(sinfo 2>&1 | tail -1). Read $folder/slurmctld.log and $folder/slurmd.log"
