#!/bin/sh
# boot.sh DISK: becomes a systemd that believes to be alone on a machine, in namespaces and a control group of its own. DISK,
# which outlives it, holds what differs from the files of this machine.
set -e
if [ "$2" != inside ]; then
    mkdir -p "$1/groups"
    mount --make-rprivate /
    mount -t cgroup2 cgroup2 "$1/groups"
    group=$1/groups/$(basename "$1")
    mkdir -p "$group"
    echo $$ > "$group/cgroup.procs"
    exec unshare --pid --mount --cgroup --uts --ipc --net --fork --kill-child sh "$0" "$1" inside
fi
root=$1/root
mkdir -p "$1/upper" "$1/work" "$root"
mount -t overlay -o lowerdir=/,upperdir="$1/upper",workdir="$1/work" overlay "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
# Each boot of a machine has another id.
cat /proc/sys/kernel/random/uuid > "$1/boot_id"
mount --bind "$1/boot_id" "$root/proc/sys/kernel/random/boot_id"
# None of this machine's own services starts, but those that systemd brings.
if [ ! -e "$1/installed" ]; then
    rm -rf "$root/etc/systemd/system/multi-user.target.wants"
    touch "$1/installed"
fi
exec env -i container=namespaces PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot "$root" /lib/systemd/systemd --system --unit=multi-user.target
